/* Files in memory that others may truncate, or the disk may fail to read. */
#ifndef SETNET_MAPPED_H
#define SETNET_MAPPED_H

#include <stdint.h>

/* Let the process survive reading a map where its file has no bytes any more: it reads zeros there, and `is_struck`
 * tells. Return the map's number, or -1 where the system cannot do this. */
int watch_map(const void *start, int64_t bytes);

/* Forget a map, before it is unmapped. */
void unwatch_map(int number);

int is_struck(int number);

/* Ask the system to read these bytes and map them; where it cannot, pages come one by one. */
void map_ahead(const void *start, int64_t bytes);

#endif
