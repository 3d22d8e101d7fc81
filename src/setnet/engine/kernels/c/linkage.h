/* Average linkage of weighted elements over a graph of neighbours, see linkage.c. */
#ifndef SETNET_LINKAGE_H
#define SETNET_LINKAGE_H

#include <stdint.h>

typedef struct {
  int64_t n, dim;
  float *sums;               /* n x dim: the weighted sum of a cluster's elements; merged in place */
  double *weights;           /* n: their weights added up; merged in place */
  int64_t *sizes;            /* n: how many elements; merged in place */
  int32_t *names;            /* n: clusters of two names never merge; -1 for none; merged in place */
  const int64_t *start;      /* n + 1: where each element's neighbours begin */
  int32_t *neighbours;       /* every pair in both directions; shortened in place */
  const int64_t *apart_start;
  int32_t *apart;            /* elements that are probably of another cluster, in both directions */
  float *apart_weight;       /* how much each counts; infinity: certainly */
} Graph;

typedef struct {
  double mean, spread;  /* of the similarity of two elements that do not belong together */
  double rest;          /* the share of the spread that is left between large clusters */
  double apart_penalty; /* taken off the score of two single elements that are apart; more for more evidence */
  double apart_rate;    /* the share of a cluster's own elements that are apart by mistake */
  const double *bars;   /* n + 1: the least score at which two merge, by the number of clusters */
} Rule;

/* Merge the best pair again and again, and write the cluster of each element: the number of its first one.
 * status[0] counts the merges; a status[1] that is not 0 ends the work. Returns -1 where memory runs out. */
int linkage(const Graph *graph, const Rule *rule, int32_t *clusters, volatile int64_t *status);

#endif
