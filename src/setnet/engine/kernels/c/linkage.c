/* Greedy agglomeration: of all clusters that have neighbours in common, the pair of the highest score merges first.
 *
 * The mean similarity of two clusters is the product of their sums over the product of their weights: no table of
 * pairs is needed, and a merge costs one product per neighbour. Every cluster knows its best partner; a heap orders
 * the clusters by that. A partner that is gone is noticed when its cluster comes up, and looked for again: a score in
 * the heap is never below the cluster's own. */
#include "linkage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2,fma", "arch=x86-64-v4")))
#else
#define VECTOR_CLONES
#endif

typedef struct {
  double score;
  int32_t cluster;
  uint32_t version;
} Entry;

typedef struct {
  int32_t *to;
  int64_t length;
  int owned; /* whether `to` is this cluster's own memory, and not a part of the graph's */
} List;

typedef struct {
  const Graph *g;
  const Rule *r;
  int32_t *parent; /* a forest: roots are the clusters */
  double *spread;  /* by cluster: the factor of its size in the spread of similarities */
  List *near, *apart;
  float **apart_weight;
  int32_t *best;
  double *best_score;
  uint32_t *best_merges; /* how often the best partner had been merged when the score was computed */
  uint32_t *merges;
  uint32_t *version; /* of the cluster's entry in the heap; others are out of date */
  int64_t *seen;     /* by cluster: the look at which it was last met */
  double *conflict;  /* by cluster: weight of the pairs apart, valid where `conflict_seen` is now */
  int64_t *conflict_seen, now;
  Entry *heap;
  int64_t entries, room;
} Work;

static int32_t root_of(int32_t *parent, int32_t x) {
  while (parent[x] != x) x = parent[x] = parent[parent[x]];
  return x;
}

typedef float float8 __attribute__((vector_size(32)));

VECTOR_CLONES static double product(const float *a, const float *b, int64_t dim) {
  float8 s = {0}, t = {0};
  int64_t d = 0;
  for (; d + 16 <= dim; d += 16) {
    float8 w, x, y, z;
    memcpy(&w, a + d, sizeof w), memcpy(&x, b + d, sizeof x);
    memcpy(&y, a + d + 8, sizeof y), memcpy(&z, b + d + 8, sizeof z);
    s += w * x;
    t += y * z;
  }
  s += t;
  double sum = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
  for (; d < dim; d++) sum += (double)a[d] * b[d];
  return sum;
}

static double spread_factor(const Rule *r, double weight) { return sqrt(r->rest + (1 - r->rest) / weight); }

static int before(const Entry *a, const Entry *b) {
  return a->score > b->score || (a->score == b->score && a->cluster < b->cluster);
}

static int push(Work *w, double score, int32_t cluster) {
  if (w->entries == w->room) {
    int64_t room = 2 * w->room;
    Entry *grown = realloc(w->heap, sizeof(Entry) * (size_t)room);
    if (!grown) return -1;
    w->heap = grown, w->room = room;
  }
  Entry e = {score, cluster, ++w->version[cluster]};
  int64_t i = w->entries++;
  for (; i && before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
  w->heap[i] = e;
  return 0;
}

static Entry pop(Work *w) {
  Entry top = w->heap[0], e = w->heap[--w->entries];
  int64_t i = 0;
  for (int64_t child; (child = 2 * i + 1) < w->entries; i = child) {
    if (child + 1 < w->entries && before(&w->heap[child + 1], &w->heap[child])) child++;
    if (!before(&w->heap[child], &e)) break;
    w->heap[i] = w->heap[child];
  }
  w->heap[i] = e;
  return top;
}

/* Add up, by cluster, the weights of its elements that are apart from elements of c. The list of c is reduced to
 * clusters, each once. */
static void count_conflicts(Work *w, int32_t c) {
  List *list = &w->apart[c];
  float *weight = w->apart_weight[c];
  int64_t kept = 0;
  for (int64_t i = 0; i < list->length; i++) {
    int32_t other = root_of(w->parent, list->to[i]);
    if (other == c) continue;
    if (w->conflict_seen[other] != w->now) {
      w->conflict_seen[other] = w->now, w->conflict[other] = 0;
      list->to[kept++] = other;
    }
    w->conflict[other] += weight[i];
  }
  list->length = kept;
  for (int64_t i = 0; i < kept; i++) weight[i] = (float)w->conflict[list->to[i]];
}

/* What pairs apart take off the score of two clusters, the smaller of which has so many elements: how much less likely
 * so many would be by mistake than by their own rate, in units of one pair of two single elements. */
static double apart_cost(const Rule *r, double pairs, double elements) {
  double share = pairs < elements ? pairs / elements : 1;
  if (share <= r->apart_rate) return 0;
  double likelihood = share * log(share / r->apart_rate);
  if (share < 1) likelihood += (1 - share) * log((1 - share) / (1 - r->apart_rate));
  return r->apart_penalty * elements * likelihood / -log(r->apart_rate);
}

/* The score of a cluster c, whose conflicts were counted, and another one; minus infinity: never. */
static double score(const Work *w, int32_t c, int32_t other) {
  const Graph *g = w->g;
  if (g->names[c] >= 0 && g->names[other] >= 0 && g->names[c] != g->names[other]) return -INFINITY;
  double taken = 0;
  if (w->conflict_seen[other] == w->now) {
    if (isinf(w->conflict[other])) return -INFINITY;
    int64_t fewer = g->sizes[c] < g->sizes[other] ? g->sizes[c] : g->sizes[other];
    taken = apart_cost(w->r, w->conflict[other], (double)fewer);
  }
  double similarity = product(g->sums + c * g->dim, g->sums + other * g->dim, g->dim);
  similarity /= g->weights[c] * g->weights[other];
  return (similarity - w->r->mean) / (w->r->spread * (w->spread[c] * w->spread[other])) - taken;
}

/* Reduce the list of a cluster's neighbours to clusters, each once, and find the best of them. With `news`, the others
 * are told: the cluster has just been merged. */
static int look(Work *w, int32_t c, int news) {
  List *list = &w->near[c];
  int64_t kept = 0;
  double high = -INFINITY;
  int32_t best = -1;
  w->now++;
  count_conflicts(w, c);
  for (int64_t i = 0; i < list->length; i++) {
    int32_t other = root_of(w->parent, list->to[i]);
    if (other == c || w->seen[other] == w->now) continue;
    w->seen[other] = w->now;
    double s = score(w, c, other);
    if (s == -INFINITY) continue; /* never: what forbids it only grows */
    list->to[kept++] = other;
    if (s > high || (s == high && other < best)) high = s, best = other;
    if (news && (s > w->best_score[other] || (s == w->best_score[other] && c < w->best[other]))) {
      w->best[other] = c, w->best_score[other] = s, w->best_merges[other] = w->merges[c];
      if (push(w, s, other)) return -1;
    }
  }
  list->length = kept;
  w->best[c] = best, w->best_score[c] = high;
  if (best < 0) {
    w->version[c]++; /* no entry of it counts any more */
    return 0;
  }
  w->best_merges[c] = w->merges[best];
  return push(w, high, c);
}

static int joined(List *into, List *from) {
  int64_t length = into->length + from->length;
  int32_t *to = length ? malloc(sizeof(int32_t) * (size_t)length) : NULL;
  if (length && !to) return -1;
  if (into->length) memcpy(to, into->to, sizeof(int32_t) * (size_t)into->length);
  if (from->length) memcpy(to + into->length, from->to, sizeof(int32_t) * (size_t)from->length);
  if (into->owned) free(into->to);
  if (from->owned) free(from->to);
  *into = (List){to, length, 1}, *from = (List){NULL, 0, 0};
  return 0;
}

static int join_apart(Work *w, int32_t a, int32_t b) {
  int64_t before = w->apart[a].length, length = before + w->apart[b].length;
  if (length == before) return 0;
  float *weight = malloc(sizeof(float) * (size_t)length);
  if (!weight) return -1;
  memcpy(weight, w->apart_weight[a], sizeof(float) * (size_t)before);
  memcpy(weight + before, w->apart_weight[b], sizeof(float) * (size_t)(length - before));
  if (w->apart[a].owned) free(w->apart_weight[a]);
  if (w->apart[b].owned) free(w->apart_weight[b]);
  w->apart_weight[a] = weight, w->apart_weight[b] = NULL;
  return joined(&w->apart[a], &w->apart[b]);
}

/* Merge b into a, the one of the smaller number. */
static int merge(Work *w, int32_t a, int32_t b) {
  const Graph *g = w->g;
  float *into = g->sums + a * g->dim;
  const float *from = g->sums + b * g->dim;
  for (int64_t d = 0; d < g->dim; d++) into[d] += from[d];
  g->weights[a] += g->weights[b];
  g->sizes[a] += g->sizes[b];
  if (g->names[a] < 0) g->names[a] = g->names[b];
  w->spread[a] = spread_factor(w->r, g->weights[a]);
  w->parent[b] = a;
  w->merges[a]++, w->version[b]++;
  return joined(&w->near[a], &w->near[b]) || join_apart(w, a, b) ? -1 : look(w, a, 1);
}

static int run(Work *w, volatile int64_t *status) {
  int64_t clusters = w->g->n;
  for (int64_t i = 0; i < w->g->n; i++)
    if (look(w, (int32_t)i, 0)) return -1;
  while (w->entries && !status[1]) {
    Entry top = pop(w);
    int32_t a = top.cluster, b = w->best[a];
    if (w->version[a] != top.version) continue;
    if (top.score < w->r->bars[clusters]) break;
    if (w->parent[b] != b || w->best_merges[a] != w->merges[b]) { /* gone, or another than it was */
      if (look(w, a, 0)) return -1;
      continue;
    }
    if (a > b) {
      int32_t other = a;
      a = b, b = other;
    }
    if (merge(w, a, b)) return -1;
    clusters--, status[0]++;
  }
  return 0;
}

static void *zeroed(int64_t n, size_t size) { return calloc((size_t)(n ? n : 1), size); }

static int prepare(Work *w) {
  const Graph *g = w->g;
  const int64_t n = g->n;
  w->room = n + 1;
  w->parent = zeroed(n, sizeof *w->parent), w->spread = zeroed(n, sizeof *w->spread);
  w->near = zeroed(n, sizeof *w->near), w->apart = zeroed(n, sizeof *w->apart);
  w->apart_weight = zeroed(n, sizeof *w->apart_weight), w->best = zeroed(n, sizeof *w->best);
  w->best_score = zeroed(n, sizeof *w->best_score), w->best_merges = zeroed(n, sizeof *w->best_merges);
  w->merges = zeroed(n, sizeof *w->merges), w->version = zeroed(n, sizeof *w->version);
  w->seen = zeroed(n, sizeof *w->seen), w->conflict = zeroed(n, sizeof *w->conflict);
  w->conflict_seen = zeroed(n, sizeof *w->conflict_seen), w->heap = zeroed(w->room, sizeof *w->heap);
  if (!w->parent || !w->spread || !w->near || !w->apart || !w->apart_weight || !w->best || !w->best_score ||
      !w->best_merges || !w->merges || !w->version || !w->seen || !w->conflict || !w->conflict_seen || !w->heap)
    return -1;
  for (int64_t i = 0; i < n; i++) {
    w->parent[i] = (int32_t)i, w->best[i] = -1, w->best_score[i] = -INFINITY;
    w->spread[i] = spread_factor(w->r, g->weights[i]);
    w->near[i] = (List){g->neighbours + g->start[i], g->start[i + 1] - g->start[i], 0};
    w->apart[i] = (List){g->apart + g->apart_start[i], g->apart_start[i + 1] - g->apart_start[i], 0};
    w->apart_weight[i] = g->apart_weight + g->apart_start[i];
  }
  return 0;
}

static void release(Work *w) {
  for (int64_t i = 0; w->near && w->apart && w->apart_weight && i < w->g->n; i++) {
    if (w->near[i].owned) free(w->near[i].to);
    if (w->apart[i].owned) free(w->apart[i].to), free(w->apart_weight[i]);
  }
  free(w->parent), free(w->spread), free(w->near), free(w->apart), free(w->apart_weight), free(w->best);
  free(w->best_score), free(w->best_merges), free(w->merges), free(w->version), free(w->seen), free(w->conflict);
  free(w->conflict_seen), free(w->heap);
}

int linkage(const Graph *graph, const Rule *rule, int32_t *clusters, volatile int64_t *status) {
  Work w = {.g = graph, .r = rule};
  int failed = prepare(&w) || run(&w, status);
  for (int64_t i = 0; !failed && i < graph->n; i++) clusters[i] = root_of(w.parent, (int32_t)i);
  release(&w);
  return failed ? -1 : 0;
}
