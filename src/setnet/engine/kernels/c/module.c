/* The Python face of the kernels: buffers in, buffers out, the GIL released while they run. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "budget.h"
#include "checksum.h"
#include "kernels.h"
#include "linkage.h"
#include "lists.h"
#include "mapped.h"
#include "match.h"

enum { STEP, SLACK, SHIFT, WEIGHT, LENGTH, LOST, LEAST, TERMS }; /* of each row of a query */

/* The scan of codes of so many bits, or of the upper ones of nine; 0 where there is none. */
static scan_function scan_of(int bits, int by_row, int upper, int least) {
  if (least) return bits == 5 ? kernels->least5 : 0;
  if (upper) return kernels->upper8;
  switch (bits) {
    case 1: return by_row ? kernels->scan1_rows : 0;
    case 4: return kernels->scan4;
    case 5: return kernels->scan5;
    case 8: return kernels->scan8;
    case 9: return kernels->scan9;
    default: return 0;
  }
}

static PyObject *py_scan(PyObject *self, PyObject *args) {
  int bits, least = 0;
  Py_buffer codes, scales, fine, fine_norms, row_start, qcodes, start, terms, owner, blocks, bounds;
  long long first_wide, groups, offset, apart;
  double w, threshold, inflate;
  if (!PyArg_ParseTuple(args, "iy*y*y*y*y*LLy*y*y*dddy*y*w*LL|p", &bits, &codes, &scales, &fine, &fine_norms,
                        &row_start, &first_wide, &groups, &qcodes, &start, &terms, &w, &threshold, &inflate, &owner,
                        &blocks, &bounds, &offset, &apart, &least))
    return NULL;
  const int64_t rows = start.len / 4, n = blocks.len / 8, *block = blocks.buf, room = bounds.len / 4;
  const int by_row = first_wide < 0;
  const float *term = terms.buf;
  Codes c = {codes.buf,  fine.buf, scales.buf, fine_norms.buf, row_start.len ? row_start.buf : NULL,
             first_wide, by_row ? codes.len / groups : 0, groups, 0};
  Query q = {rows, qcodes.buf, rows ? qcodes.len / rows : 0, start.buf, term + STEP * rows, term + SLACK * rows,
             term + SHIFT * rows, term + WEIGHT * rows, term + LENGTH * rows, term + LOST * rows, term + LEAST * rows,
             owner.buf, (float)w, (float)threshold, (float)inflate};
  const int upper = bits == 8 && fine.len;
  const scan_function scan = scan_of(bits, by_row, upper, least);
  int fits = scan && owner.len / 8 == rows && terms.len / 4 == TERMS * rows && offset >= 0 &&
             ((bits != 9 && !upper) || fine.len / 4 == codes.len / 5);
  for (int64_t p = 0; fits && p < rows; p++) fits = q.owner[p] >= 0 && (q.owner[p] + 1) * apart <= room;
  for (int64_t i = 0; fits && i < n; i++) {
    const int64_t last = by_row && (block[i] + 1) * LANES > c.items ? c.items : (block[i] + 1) * LANES;
    fits = block[i] >= 0 && block[i] * LANES < last && offset + last <= apart;
  }
  if (!fits) {
    PyErr_SetString(PyExc_ValueError, "scan: a block outside the bounds");
  } else {
    Py_BEGIN_ALLOW_THREADS scan(&c, &q, block, n, (float *)bounds.buf + offset, apart);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&codes), PyBuffer_Release(&scales), PyBuffer_Release(&fine), PyBuffer_Release(&fine_norms);
  PyBuffer_Release(&row_start), PyBuffer_Release(&qcodes), PyBuffer_Release(&start), PyBuffer_Release(&terms);
  PyBuffer_Release(&owner), PyBuffer_Release(&blocks), PyBuffer_Release(&bounds);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

/* Whether runs of items lie one after another in codes, and have tables. */
static int are_runs(const BudgetCodes *c, int64_t codes, int64_t tables) {
  int fits = c->count > 0 && c->runs[0].lane == 0 && c->stride > 0;
  for (int64_t i = 0; fits && i < c->count; i++) {
    const Run *run = c->runs + i;
    const int64_t items = (i + 1 < c->count ? run[1].lane : c->lanes) - run->lane;
    fits = items >= 0 && run->elements > 0 && run->bytes > 0 && run->code >= 0 && run->table >= 0 &&
           run->code <= codes && items <= (codes - run->code) / run->bytes / run->elements &&
           run->table + run->bytes * 256 * c->stride <= tables;
  }
  return fits;
}

static PyObject *py_scan_budget(PyObject *self, PyObject *args) {
  int least = 0, failed = 0;
  Py_buffer codes, runs, tables, terms, owner, blocks, bounds;
  long long lanes, offset, apart;
  double w, threshold, inflate;
  if (!PyArg_ParseTuple(args, "y*y*Ly*y*dddy*y*w*LL|p", &codes, &runs, &lanes, &tables, &terms, &w, &threshold,
                        &inflate, &owner, &blocks, &bounds, &offset, &apart, &least))
    return NULL;
  const int64_t rows = owner.len / 8, n = blocks.len / 8, *block = blocks.buf, room = bounds.len / 4;
  const float *term = terms.buf;
  const BudgetCodes c = {codes.buf, runs.buf, runs.len / sizeof(Run), lanes, tables.buf, (rows + 3) / 4 * 4};
  Query q = {rows, 0, 0, 0, 0, 0, term + SHIFT * rows, term + WEIGHT * rows, 0, 0, term + LEAST * rows,
             owner.buf, (float)w, (float)threshold, (float)inflate};
  int fits = terms.len / 4 == TERMS * rows && offset >= 0 && are_runs(&c, codes.len, tables.len / 4);
  for (int64_t p = 0; fits && p < rows; p++) fits = q.owner[p] >= 0 && (q.owner[p] + 1) * apart <= room;
  for (int64_t i = 0; fits && i < n; i++) fits = block[i] >= 0 && offset + (block[i] + 1) * LANES <= apart;
  if (!fits) {
    PyErr_SetString(PyExc_ValueError, "scan_budget: arrays that do not fit each other");
  } else {
    Py_BEGIN_ALLOW_THREADS failed =
        scan_budget(&c, &q, block, n, (float *)bounds.buf + offset, apart, least);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&codes), PyBuffer_Release(&runs), PyBuffer_Release(&tables), PyBuffer_Release(&terms);
  PyBuffer_Release(&owner), PyBuffer_Release(&blocks), PyBuffer_Release(&bounds);
  if (PyErr_Occurred()) return NULL;
  if (failed) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject *py_encode_budget(PyObject *self, PyObject *args) {
  Py_buffer rows, starts, points, codes;
  long long dim;
  if (!PyArg_ParseTuple(args, "y*Ly*y*w*", &rows, &dim, &starts, &points, &codes)) return NULL;
  const int64_t bytes = starts.len / 8 - 1, *start = starts.buf, n = dim > 0 ? rows.len / 4 / dim : 0;
  int fits = dim > 0 && bytes > 0 && codes.len == n * bytes && start[0] >= 0 && start[bytes] <= dim;
  for (int64_t b = 0; fits && b < bytes; b++) {
    const int64_t width = start[b + 1] - start[b];
    fits = width > 0 && 128 * width * (width + 3) <= points.len / 4;
  }
  if (!fits) {
    PyErr_SetString(PyExc_ValueError, "encode_budget: arrays that do not fit each other");
  } else {
    Py_BEGIN_ALLOW_THREADS encode_budget(rows.buf, n, dim, start, bytes, points.buf, codes.buf);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&rows), PyBuffer_Release(&starts), PyBuffer_Release(&points), PyBuffer_Release(&codes);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

static PyObject *py_evaluate(PyObject *self, PyObject *args) {
  Py_buffer rows, offsets, query, first_row, shift, least, items;
  Py_buffer score, sum, similarity, element, matched, unmatched, unwanted;
  int half, combine;
  long long dim, without;
  double w, b;
  if (!PyArg_ParseTuple(args, "y*iLy*y*y*iLddy*y*y*w*w*w*w*w*w*w*", &rows, &half, &dim, &offsets, &query,
                        &first_row, &combine, &without, &w, &b, &shift, &least, &items, &score, &sum, &similarity,
                        &element, &matched, &unmatched, &unwanted))
    return NULL;
  Elements e = {rows.buf, half, dim, offsets.buf};
  int64_t size = first_row.len / 8 - 1, n = items.len / 8;
  QuerySet q = {query.buf, (dim + 7) / 8 * 8, size, first_row.buf, combine, without, w, b, shift.buf, least.buf};
  Scores out = {score.buf, sum.buf, similarity.buf, element.buf, matched.buf, unmatched.buf, unwanted.buf};
  int failed = 0;
  if (shift.len < size * 8 || least.len < (size + without) * 8) {
    PyErr_SetString(PyExc_ValueError, "evaluate: a shift and a least similarity for each element are needed");
  } else if (score.len < n * 8 || sum.len < n * 8 || similarity.len < n * size * 8 || element.len < n * size * 4 ||
      matched.len < n * 4 || unmatched.len < n || unwanted.len < n) {
    PyErr_SetString(PyExc_ValueError, "evaluate: output arrays too small");
  } else {
    Py_BEGIN_ALLOW_THREADS failed = evaluate(&e, &q, items.buf, n, &out);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&rows), PyBuffer_Release(&offsets), PyBuffer_Release(&query), PyBuffer_Release(&first_row);
  PyBuffer_Release(&shift), PyBuffer_Release(&least), PyBuffer_Release(&items);
  PyBuffer_Release(&score), PyBuffer_Release(&sum), PyBuffer_Release(&similarity);
  PyBuffer_Release(&element), PyBuffer_Release(&matched), PyBuffer_Release(&unmatched), PyBuffer_Release(&unwanted);
  if (PyErr_Occurred()) return NULL;
  if (failed) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject *py_greedy(PyObject *self, PyObject *args) {
  Py_buffer similarity, element;
  long long n, size, elements;
  int failed = 0;
  if (!PyArg_ParseTuple(args, "y*LLLw*", &similarity, &n, &size, &elements, &element)) return NULL;
  if (similarity.len < n * size * elements * 8 || element.len < n * size * 4) {
    PyErr_SetString(PyExc_ValueError, "greedy: arrays too small");
  } else {
    Py_BEGIN_ALLOW_THREADS failed = greedy(similarity.buf, n, size, elements, element.buf);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&similarity), PyBuffer_Release(&element);
  if (PyErr_Occurred()) return NULL;
  if (failed) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject *py_pack(PyObject *self, PyObject *args) {
  Py_buffer rows, slots, codes, scales;
  int half, failed = 0;
  long long dim;
  double norms[2] = {0, 0};
  if (!PyArg_ParseTuple(args, "y*iLy*w*w*", &rows, &half, &dim, &slots, &codes, &scales)) return NULL;
  Elements e = {rows.buf, half, dim, NULL};
  int64_t n = slots.len / 8 / LANES;
  if (codes.len < n * ((dim + 3) / 4) * LINE || scales.len < n * LANES * 4) {
    PyErr_SetString(PyExc_ValueError, "pack: output arrays too small");
  } else {
    Py_BEGIN_ALLOW_THREADS failed = pack(&e, slots.buf, n, codes.buf, scales.buf, norms);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&rows), PyBuffer_Release(&slots), PyBuffer_Release(&codes), PyBuffer_Release(&scales);
  if (PyErr_Occurred()) return NULL;
  if (failed) return PyErr_NoMemory();
  return Py_BuildValue("dd", norms[0], norms[1]);
}

static PyObject *py_pack_codes(PyObject *self, PyObject *args) {
  Py_buffer rows, slots, codes, norms;
  int half, fine, failed = 0;
  long long dim;
  if (!PyArg_ParseTuple(args, "y*iLy*iw*w*", &rows, &half, &dim, &slots, &fine, &codes, &norms)) return NULL;
  Elements e = {rows.buf, half, dim, NULL};
  const int64_t n = slots.len / 8 / LANES, lines = (dim + PANEL - 1) / PANEL * (fine ? 4 : 5);
  if (codes.len < n * lines * LINE || norms.len < n * LANES * 2 * (fine ? 1 : NORMS)) {
    PyErr_SetString(PyExc_ValueError, "pack_codes: output arrays too small");
  } else {
    Py_BEGIN_ALLOW_THREADS failed = pack_codes(&e, slots.buf, n, fine, codes.buf, norms.buf);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&rows), PyBuffer_Release(&slots), PyBuffer_Release(&codes), PyBuffer_Release(&norms);
  if (PyErr_Occurred()) return NULL;
  if (failed) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject *py_set_similarities(PyObject *self, PyObject *args) {
  Py_buffer codes, scales, query, items, out;
  int bits, failed = 0;
  long long dim, width, count;
  if (!PyArg_ParseTuple(args, "iy*y*LLy*Ly*w*", &bits, &codes, &scales, &dim, &width, &query, &count, &items, &out))
    return NULL;
  SetRows rows = {codes.buf, scales.len ? scales.buf : NULL, bits, dim, width};
  int64_t n = items.len / 8;
  if (out.len < n * count * 8) {
    PyErr_SetString(PyExc_ValueError, "set_similarities: output array too small");
  } else {
    Py_BEGIN_ALLOW_THREADS failed =
        set_similarities(&rows, query.buf, count, (dim + 7) / 8 * 8, items.buf, n, out.buf);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&codes), PyBuffer_Release(&scales), PyBuffer_Release(&query), PyBuffer_Release(&items);
  PyBuffer_Release(&out);
  if (PyErr_Occurred()) return NULL;
  if (failed) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject *py_collect(PyObject *self, PyObject *args) {
  Py_buffer bounds, out;
  double low;
  if (!PyArg_ParseTuple(args, "y*dw*", &bounds, &low, &out)) return NULL;
  int64_t found;
  Py_BEGIN_ALLOW_THREADS found =
      kernels->collect(bounds.buf, bounds.len / 4, (float)low, out.buf, out.len / 8);
  Py_END_ALLOW_THREADS
  PyBuffer_Release(&bounds), PyBuffer_Release(&out);
  return PyLong_FromLongLong(found);
}

static PyObject *py_take_mask(PyObject *self, PyObject *args) {
  Py_buffer mask, numbers, out;
  if (!PyArg_ParseTuple(args, "y*y*w*", &mask, &numbers, &out)) return NULL;
  const int32_t *number = numbers.buf;
  const uint8_t *entries = mask.buf;
  uint8_t *taken = out.buf;
  int64_t n = numbers.len / 4, fits = out.len >= n;
  for (int64_t i = 0; fits && i < n; i++) {
    fits = number[i] < mask.len;
    taken[i] = fits && number[i] >= 0 && entries[number[i]];
  }
  if (!fits) PyErr_SetString(PyExc_ValueError, "take_mask: a number outside the mask");
  PyBuffer_Release(&mask), PyBuffer_Release(&numbers), PyBuffer_Release(&out);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

VECTOR_CLONES static void close_lanes(float *bounds, const uint8_t *is_open, int64_t n) {
  for (int64_t i = 0; i < n; i++) bounds[i] = is_open[i] ? bounds[i] : -1.0f;
}

static PyObject *py_close_lanes(PyObject *self, PyObject *args) {
  Py_buffer bounds, is_open;
  if (!PyArg_ParseTuple(args, "w*y*", &bounds, &is_open)) return NULL;
  if (is_open.len != bounds.len / 4) PyErr_SetString(PyExc_ValueError, "close_lanes: as many lanes as bounds are needed");
  else close_lanes(bounds.buf, is_open.buf, is_open.len);
  PyBuffer_Release(&bounds), PyBuffer_Release(&is_open);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

static PyObject *py_search_lists(PyObject *self, PyObject *args) {
  Py_buffer centres, half_squares, start, codes, factors, list_items, offsets, rows, row_factors, is_open;
  Py_buffer query, middle, step, least, first_row, shift, items, scores, read;
  long long units, probes, wanted, candidates;
  int combine;
  double w, threshold;
  if (!PyArg_ParseTuple(args, "Ly*y*y*y*y*y*y*y*y*y*y*y*y*y*y*iy*ddLLLw*w*w*", &units, &centres, &half_squares, &start,
                        &codes, &factors, &list_items, &offsets, &rows, &row_factors, &is_open, &query, &middle, &step,
                        &least, &first_row, &combine, &shift, &w, &threshold, &probes, &wanted, &candidates, &items, &scores,
                        &read))
    return NULL;
  const int64_t lists = start.len / 8 - 1, blocks = lists < 1 ? 0 : ((int64_t *)start.buf)[lists];
  const int64_t n = offsets.len / 8 - 1, elements = n < 1 ? 0 : ((int64_t *)offsets.buf)[n];
  const int64_t queried = step.len / 4, size = first_row.len / 8 - 1;
  const Lists l = {units, lists, centres.buf, half_squares.buf, start.buf, codes.buf, factors.buf, list_items.buf,
                   offsets.buf, rows.buf, row_factors.buf, is_open.len ? is_open.buf : NULL};
  const ListQuery q = {queried, size, first_row.buf, combine, query.buf, middle.buf, step.buf, least.buf, shift.buf,
                       (float)w, (float)threshold};
  const Effort effort = {probes, wanted, candidates};
  int64_t found = 0;
  if (units < 4 || units % 4 || lists < 1 || lists % LANES || centres.len != lists * 2 * units * 4 ||
      half_squares.len != lists * 4 || codes.len != blocks * units * LINE || factors.len != blocks * LANES * 2 ||
      list_items.len != blocks * LANES * 4 || rows.len != elements * units * 4 || row_factors.len != elements * 2 ||
      (is_open.len && is_open.len != n) || queried < 1 || query.len != queried * 2 * units * 4 ||
      middle.len != queried * 4 || least.len != queried * 4 || size < 1 || ((int64_t *)first_row.buf)[size] != queried || shift.len != size * 4 ||
      probes < 1 || wanted < 1 || candidates < 1 || items.len < candidates * 8 || scores.len < candidates * 4 ||
      read.len < 16) {
    PyErr_SetString(PyExc_ValueError, "search_lists: arrays that do not fit each other");
  } else {
    Py_BEGIN_ALLOW_THREADS found = search_lists(&l, &q, &effort, kernels->lists, items.buf, scores.buf, read.buf);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&centres), PyBuffer_Release(&half_squares), PyBuffer_Release(&start), PyBuffer_Release(&codes);
  PyBuffer_Release(&factors), PyBuffer_Release(&list_items), PyBuffer_Release(&offsets), PyBuffer_Release(&rows);
  PyBuffer_Release(&row_factors), PyBuffer_Release(&is_open), PyBuffer_Release(&query), PyBuffer_Release(&middle);
  PyBuffer_Release(&step), PyBuffer_Release(&least), PyBuffer_Release(&first_row), PyBuffer_Release(&shift);
  PyBuffer_Release(&items), PyBuffer_Release(&scores), PyBuffer_Release(&read);
  if (PyErr_Occurred()) return NULL;
  return found < 0 ? PyErr_NoMemory() : PyLong_FromLongLong(found);
}

/* Whether offsets cut an array of so many numbers, each of which is below n, into n parts. */
static int is_sound(const Py_buffer *offsets, const Py_buffer *numbers, int64_t n) {
  const int64_t *start = offsets->buf, count = numbers->len / 4;
  const int32_t *number = numbers->buf;
  if (offsets->len / 8 != n + 1 || start[0] != 0 || start[n] != count) return 0;
  for (int64_t i = 0; i < n; i++)
    if (start[i] > start[i + 1]) return 0;
  for (int64_t i = 0; i < count; i++)
    if (number[i] < 0 || number[i] >= n) return 0;
  return 1;
}

static PyObject *py_linkage(PyObject *self, PyObject *args) {
  Py_buffer sums, weights, sizes, names, start, neighbours, apart_start, apart, apart_weight, bars, clusters, status;
  long long dim;
  Rule rule;
  int failed = 0;
  if (!PyArg_ParseTuple(args, "Lw*w*w*w*y*w*y*w*w*dddddy*w*w*", &dim, &sums, &weights, &sizes, &names, &start,
                        &neighbours, &apart_start, &apart, &apart_weight, &rule.mean, &rule.spread, &rule.rest,
                        &rule.apart_penalty, &rule.apart_rate, &bars, &clusters, &status))
    return NULL;
  const int64_t n = weights.len / 8;
  Graph graph = {n,         dim,            sums.buf,        weights.buf, sizes.buf,       names.buf,
                 start.buf, neighbours.buf, apart_start.buf, apart.buf,   apart_weight.buf};
  rule.bars = bars.buf;
  if (dim < 1 || n > INT32_MAX || sums.len / 4 != n * dim || sizes.len / 8 != n || names.len / 4 != n ||
      bars.len / 8 != n + 1 || clusters.len / 4 != n || status.len / 8 != 2 || apart_weight.len != apart.len ||
      !is_sound(&start, &neighbours, n) || !is_sound(&apart_start, &apart, n)) {
    PyErr_SetString(PyExc_ValueError, "linkage: arrays that do not fit each other");
  } else {
    Py_BEGIN_ALLOW_THREADS failed = linkage(&graph, &rule, clusters.buf, status.buf);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&sums), PyBuffer_Release(&weights), PyBuffer_Release(&sizes), PyBuffer_Release(&names);
  PyBuffer_Release(&start), PyBuffer_Release(&neighbours), PyBuffer_Release(&apart_start), PyBuffer_Release(&apart);
  PyBuffer_Release(&apart_weight), PyBuffer_Release(&bars), PyBuffer_Release(&clusters), PyBuffer_Release(&status);
  if (PyErr_Occurred()) return NULL;
  if (failed) return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject *py_checksum_blocks(PyObject *self, PyObject *args) {
  Py_buffer data, sums;
  long long block, held;
  unsigned int crc;
  if (!PyArg_ParseTuple(args, "y*LLIw*", &data, &block, &held, &crc, &sums)) return NULL;
  if (block < 1 || held < 0 || held >= block || sums.len / 4 < (held + data.len) / block) {
    PyErr_SetString(PyExc_ValueError, "checksum_blocks: a block for each checksum is needed");
  } else {
    Py_BEGIN_ALLOW_THREADS crc = checksum_blocks(data.buf, data.len, block, held, crc, sums.buf);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&data), PyBuffer_Release(&sums);
  return PyErr_Occurred() ? NULL : PyLong_FromUnsignedLong(crc);
}

static PyObject *py_damaged_block(PyObject *self, PyObject *args) {
  Py_buffer data, sums, seen, starts, ends;
  long long block;
  int64_t found = -1;
  if (!PyArg_ParseTuple(args, "y*Ly*w*y*y*", &data, &block, &sums, &seen, &starts, &ends)) return NULL;
  const Checked array = {data.buf, data.len, block, sums.buf, seen.buf};
  const int64_t *start = starts.buf, *end = ends.buf, n = starts.len / 8;
  int fits = block > 0 && ends.len / 8 == n && sums.len / 4 * block >= data.len && seen.len * block >= data.len;
  for (int64_t i = 0; fits && i < n; i++) fits = 0 <= start[i] && start[i] <= end[i] && end[i] <= data.len;
  if (!fits) {
    PyErr_SetString(PyExc_ValueError, "damaged_block: bytes outside the array");
  } else {
    Py_BEGIN_ALLOW_THREADS for (int64_t i = 0; i < n && found < 0; i++) found = damaged_block(&array, start[i], end[i]);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&data), PyBuffer_Release(&sums), PyBuffer_Release(&seen);
  PyBuffer_Release(&starts), PyBuffer_Release(&ends);
  return PyErr_Occurred() ? NULL : PyLong_FromLongLong(found);
}

static PyObject *py_watch(PyObject *self, PyObject *arg) {
  Py_buffer map;
  if (PyObject_GetBuffer(arg, &map, PyBUF_SIMPLE)) return NULL;
  const int number = watch_map(map.buf, map.len);
  PyBuffer_Release(&map);
  return PyLong_FromLong(number);
}

static PyObject *py_unwatch(PyObject *self, PyObject *arg) {
  const long number = PyLong_AsLong(arg);
  if (PyErr_Occurred()) return NULL;
  unwatch_map((int)number);
  Py_RETURN_NONE;
}

static PyObject *py_is_struck(PyObject *self, PyObject *arg) {
  const long number = PyLong_AsLong(arg);
  return PyErr_Occurred() ? NULL : PyBool_FromLong(is_struck((int)number));
}

static PyObject *py_use_level(PyObject *self, PyObject *arg) {
  const char *name = PyUnicode_AsUTF8(arg);
  if (!name) return NULL;
  for (int level = 0; level < count_levels(); level++)
    if (!strcmp(name, LEVELS[level].name)) {
      kernels = &LEVELS[level];
      Py_RETURN_NONE;
    }
  return PyErr_Format(PyExc_ValueError, "this machine has no kernels of level '%s'", name);
}

static PyObject *py_levels(PyObject *self, PyObject *none) {
  PyObject *names = PyList_New(0);
  for (int level = 0; names && level < count_levels(); level++) {
    PyObject *name = PyUnicode_FromString(LEVELS[level].name);
    if (!name || PyList_Append(names, name)) Py_CLEAR(names);
    Py_XDECREF(name);
  }
  return names;
}

static PyMethodDef METHODS[] = {
    {"checksum_blocks", py_checksum_blocks, METH_VARARGS, "CRC-32 of each block that some bytes complete."},
    {"collect", py_collect, METH_VARARGS, "Indices whose bound reaches a level."},
    {"damaged_block", py_damaged_block, METH_VARARGS, "Verify blocks; the first one that is damaged, or -1."},
    {"encode_budget", py_encode_budget, METH_VARARGS, "Budget codes of rotated vectors."},
    {"evaluate", py_evaluate, METH_VARARGS, "Exact scores of chosen items."},
    {"greedy", py_greedy, METH_VARARGS, "Greedy one-to-one matching of tables of similarities."},
    {"is_struck", py_is_struck, METH_O, "Whether a part of a watched map could not be read."},
    {"levels", py_levels, METH_NOARGS, "Instruction sets this machine offers, slowest first."},
    {"linkage", py_linkage, METH_VARARGS, "Average linkage over a graph of neighbours."},
    {"pack", py_pack, METH_VARARGS, "Interleaved codes of eight bits of chosen rows."},
    {"pack_codes", py_pack_codes, METH_VARARGS, "Interleaved codes of five bits, or four more, of chosen elements."},
    {"take_mask", py_take_mask, METH_VARARGS, "Entries of a mask by number; of numbers below zero none."},
    {"close_lanes", py_close_lanes, METH_VARARGS, "Put the bounds of closed lanes below zero."},
    {"scan", py_scan, METH_VARARGS, "Upper bounds of the scores of all lanes of chosen blocks."},
    {"scan_budget", py_scan_budget, METH_VARARGS, "The same from budget codes."},
    {"search_lists", py_search_lists, METH_VARARGS, "Items with the most promising elements, by inverted lists."},
    {"set_similarities", py_set_similarities, METH_VARARGS, "Exact similarities of chosen set vectors."},
    {"unwatch", py_unwatch, METH_O, "Forget a map, before it is unmapped."},
    {"use_level", py_use_level, METH_O, "Choose an instruction set by name."},
    {"watch", py_watch, METH_O, "Survive reading a map whose file is truncated; return its number."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_kernels", "Hot kernels of the index.", -1, METHODS};

PyMODINIT_FUNC PyInit__kernels(void) {
  kernels = &LEVELS[count_levels() - 1];
  prepare_checksums();
  return PyModule_Create(&MODULE);
}
