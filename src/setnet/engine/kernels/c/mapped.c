#include "mapped.h"

#if defined(__unix__) || defined(__APPLE__)

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif
#if defined(__linux__) && !defined(MADV_POPULATE_READ)
#define MADV_POPULATE_READ 22 /* not in the headers of old systems */
#endif

#define MOST_MAPS (1 << 16) /* more than Linux allows by default */

static struct {
  uintptr_t start, end;
  volatile sig_atomic_t struck;
} maps[MOST_MAPS]; /* memory of the system is used for those entries only that are */
static volatile int count;
static uintptr_t page;
static struct sigaction before;

/* Put zeros in place of a map from a page on that the system could not read, if it is one of ours. */
static int cover(uintptr_t at) {
  for (int i = 0; i < count; i++)
    if (maps[i].start <= at && at < maps[i].end) {
      void *first = (void *)(at / page * page);
      maps[i].struck = 1;
      return mmap(first, maps[i].end - at / page * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
             first;
    }
  return 0;
}

/* Handlers that were there before, and that came later and call us, may call each other: the second time around the
 * signal ends the process. */
static void on_bus_error(int signal, siginfo_t *info, void *context) {
  static volatile sig_atomic_t depth;
  if (info->si_code > 0 && cover((uintptr_t)info->si_addr)) return;
  if (depth || before.sa_handler == SIG_DFL || (before.sa_handler == SIG_IGN && info->si_code > 0)) {
    struct sigaction end = {.sa_handler = SIG_DFL};
    sigaction(signal, &end, NULL);
    if (info->si_code <= 0) raise(signal); /* else the same instruction faults again */
    return;
  }
  depth++;
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
  depth--;
}

int watch_map(const void *start, int64_t bytes) {
  struct sigaction now, ours = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  page = (uintptr_t)sysconf(_SC_PAGESIZE);
  sigaction(SIGBUS, NULL, &now);
  if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_bus_error) {
    before = now;
    sigaction(SIGBUS, &ours, NULL);
  }
  int i = 0;
  while (i < count && maps[i].end) i++;
  if (i == MOST_MAPS) return -1;
  maps[i].struck = 0;
  maps[i].start = (uintptr_t)start;
  maps[i].end = (uintptr_t)start + ((uintptr_t)bytes + page - 1) / page * page;
  if (i == count) count = i + 1;
  return i;
}

void unwatch_map(int number) {
  if (0 <= number && number < count) maps[number].start = maps[number].end = 0;
}

int is_struck(int number) { return 0 <= number && number < count && maps[number].struck; }

void map_ahead(const void *start, int64_t bytes) {
#ifdef MADV_POPULATE_READ
  const uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1, first = (uintptr_t)start & ~mask;
  madvise((void *)first, (uintptr_t)start - first + (uintptr_t)bytes, MADV_POPULATE_READ);
#else
  (void)start, (void)bytes;
#endif
}

#else

int watch_map(const void *start, int64_t bytes) { return (void)start, (void)bytes, -1; }
void unwatch_map(int number) { (void)number; }
int is_struck(int number) { return (void)number, 0; }
void map_ahead(const void *start, int64_t bytes) { (void)start, (void)bytes; }

#endif
