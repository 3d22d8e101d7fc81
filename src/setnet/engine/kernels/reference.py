"""The kernels in plain NumPy: the oracle of the tests, and what answers when the extension is not built.

Each function takes the arguments of its twin in ``_kernels`` and computes the same by the simplest means.
"""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels.lanes import LANES, PANEL, interleave
from setnet.engine.kernels.linkage_reference import linkage as linkage
from setnet.engine.kernels.lists_reference import search_lists as search_lists
from setnet.heads import codec


def levels() -> list[str]:
    """Return the one level there is."""
    return ["reference"]


def use_level(name: str) -> None:
    """Accept only the reference level."""
    if name != "reference":
        raise ValueError(f"this machine has no kernels of level {name!r}")


def greedy_pairs(key: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return the accepted (query element, element) pairs of paper 5.3, in decreasing order of ``key``.

    All pairs are considered from the most similar down; one is accepted when neither of its sides has been
    accepted before. Equal pairs go by query element, then by element.

    >>> greedy_pairs(np.array([[0.9, 0.8], [0.85, 0.1]]))
    [(0, 0), (1, 1)]
    """
    size, elements = key.shape
    pairs: list[tuple[int, int]] = []
    used_query, used_elements = set[int](), set[int]()
    for flat in np.argsort(-key, axis=None, kind="stable").tolist():
        member, element = divmod(flat, elements)
        if member not in used_query and element not in used_elements:
            pairs.append((member, element))
            used_query.add(member)
            used_elements.add(element)
            if len(pairs) == min(size, elements):
                break
    return pairs


def greedy(
    similarity: NDArray[np.float64], n: int, size: int, elements: int, element: NDArray[np.int32]
) -> None:
    """Write the element matched with each query element, -1 for none, of n tables of similarities."""
    element[:] = -1
    for table, out in zip(similarity.reshape(n, size, elements), element.reshape(n, size), strict=True):
        for member, matched in greedy_pairs(table):
            out[member] = matched


def _sigmoid(z: NDArray[Any]) -> NDArray[Any]:
    e = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1.0, e) / (1.0 + e))


def _share(w: float, similarities: NDArray[np.float64], b: float) -> NDArray[np.float64]:
    return np.asarray(_sigmoid(w * similarities + b)) if w else similarities


def evaluate(
    rows: NDArray[Any], half: int, dim: int, offsets: NDArray[np.int64], query: NDArray[np.float64],
    first_row: NDArray[np.int64], combine: int, without: int, w: float, b: float,
    shift: NDArray[np.float64], least: NDArray[np.float64], items: NDArray[np.int64],
    score: NDArray[np.float64], similarity_sum: NDArray[np.float64], similarity: NDArray[np.float64],
    element: NDArray[np.int32], matched: NDArray[np.int32], unmatched: NDArray[np.uint8],
    unwanted: NDArray[np.uint8],
) -> None:  # fmt: skip
    """Score items one by one: float64 similarities, greedy pairs, the sum of their probabilities.

    Without a steepness ``w`` a score is the sum of the largest similarities. ``shift`` is added
    to the similarities of each query element where they are scored and ordered; ``least`` is the similarity
    from which each query element, and then each unwanted vector, is matched.
    """
    size = len(first_row) - 1
    wanted = query[: first_row[-1], :dim]
    others = query[first_row[-1] : first_row[-1] + without, :dim]
    for i, item in enumerate(items.tolist()):
        stored = rows[offsets[item] : offsets[item + 1]].astype(np.float64)
        sims = wanted @ stored.T
        groups = [sims[a:z] for a, z in pairwise(first_row)]
        if combine == 1:
            rows_of = zip(groups, shift, strict=True)
            key = np.stack([_share(w, g + moved, b).mean(axis=0) for g, moved in rows_of])
            pair = np.stack([g.mean(axis=0) for g in groups])
        else:
            pair = np.stack([g.max(axis=0) for g in groups])
            key = pair + shift[:, None]
        element[i], similarity[i], score[i], similarity_sum[i], matched[i] = -1, 0.0, 0.0, 0.0, 0
        best = [(p, int(e)) for p, e in enumerate(key.argmax(axis=1))]
        best.sort(key=lambda pair: -key[pair])
        for p, e in greedy_pairs(key) if w else best:
            s = pair[p, e]
            element[i, p], similarity[i, p] = e, s
            score[i] += key[p, e] if combine == 1 else _share(w, np.asarray(s + shift[p]), b)
            similarity_sum[i] += s
            matched[i] += s >= least[p]
        unmatched[i] = bool((pair < least[:size, None]).all(axis=0).any())
        unwanted[i] = bool(without and (others @ stored.T >= least[size:, None]).any())


STEP, SLACK, SHIFT, WEIGHT, LENGTH, LOST, LEAST = range(7)  # the terms of a query's rows
SCALE, RESIDUAL, NORM = range(3)  # the norms of codes of five bits


def scan(
    bits: int, codes: NDArray[np.uint8], scales: NDArray[Any], fine: NDArray[np.uint8],
    fine_norms: NDArray[np.uint16], row_start: NDArray[np.int64], first_wide: int, groups: int,
    query: NDArray[np.int8], start: NDArray[np.int32], terms: NDArray[np.float32], w: float, threshold: float,
    inflate: float, owner: NDArray[np.int64], blocks: NDArray[np.int64], bounds: NDArray[np.float32],
    offset: int, apart: int, least: bool = False,
) -> None:  # fmt: skip
    """Write the bounds of all lanes of blocks, each query's in its row.

    ``fine`` and ``fine_norms`` are read at nine bits, or at the upper eight of them, which is 8 with
    ``fine``. ``owner`` is the query of each row of codes;
    query i's bounds begin at i * apart + offset, in the order of blocks. A ``first_wide`` of -1 says that
    one-bit codes lie row by row, 16 items to a block. With ``least``, by how much the least similar
    element of a lane reaches the ``LEAST`` of whatever row of the query it reaches by most is written
    instead.
    """
    queries, in_panels = int(owner.max()) + 1, bits in (5, 9) or (bits == 8 and len(fine) > 0)
    out = bounds.reshape(-1)[: queries * apart].reshape(queries, apart)[:, offset:]
    belongs = (owner[:, None] == np.arange(queries)) * terms[WEIGHT][:, None]
    for block in blocks.tolist():
        place = block * LANES
        if first_wide < 0:
            items = slice(block * LANES, min(len(codes), (block + 1) * LANES))
            sums = _looked_up(codes[items], query)
            best = scales[items, None] * (terms[STEP] * sums.astype(np.float32) + terms[SLACK]) + terms[SHIFT]
            out[:, place : place + items.stop - items.start] = (
                _bounded(w, best, threshold, inflate) @ belongs
            ).T
            continue
        rows = slice(row_start[block], row_start[block + 1]) if len(row_start) else slice(block, block + 1)
        if in_panels:
            levels = _levels(codes[rows], fine[rows] if bits > 5 else None) >> int(bits == 8)
            sums = levels @ query.T.astype(np.int64) + start
        else:
            raw = codes[rows].transpose(0, 2, 1, 3).astype(np.int64)  # row, lane, group, byte
            if bits == 4:
                raw = np.concatenate([raw & 15, raw >> 4], axis=3)
            sums = raw.reshape(raw.shape[0], LANES, -1) @ query.T.astype(np.int64) + start
        similarity = terms[STEP] * sums.astype(np.float32) + terms[SLACK]
        if in_panels:
            norms = from_upper(scales[rows])
            residual = from_upper(fine_norms[rows]) if bits > 5 else norms[:, RESIDUAL]
            similarity = norms[:, SCALE, :, None] * similarity + terms[LENGTH] * residual[..., None]
            similarity += terms[LOST] * norms[:, NORM, :, None]
        else:
            stored = scales.reshape(-1, LANES)[rows, :, None]
            similarity = stored * similarity
        wide = block >= first_wide
        if least:
            above = similarity - terms[LEAST]
            for q in range(queries):
                lowest = above[:, :, owner == q].max(axis=2).min(axis=0)
                out[q, place : place + LANES] = lowest.min() if wide else lowest
            continue
        best = similarity.max(axis=0)
        if wide:
            best[:] = best.max(axis=0)
        out[:, place : place + LANES] = (_bounded(w, best + terms[SHIFT], threshold, inflate) @ belongs).T


def _bounded(w: float, best: NDArray[Any], threshold: float, inflate: float) -> NDArray[Any]:
    """Return what query elements of these similarities add to a bound."""
    return _sigmoid(w * (best - threshold) + inflate) if w else np.maximum(best, 0)


def scan_budget(
    codes: NDArray[np.uint8], runs: NDArray[np.int64], lanes: int, tables: NDArray[np.float32],
    terms: NDArray[np.float32], w: float, threshold: float, inflate: float, owner: NDArray[np.int64],
    blocks: NDArray[np.int64], bounds: NDArray[np.float32], offset: int, apart: int, least: bool = False,
) -> None:  # fmt: skip
    """Write the bounds of all lanes of blocks, as `scan` does, from budget codes.

    A run has its first lane, the elements of each of its items, the bytes of each element, where the codes
    of its items begin, and where the tables of its bytes do: 256 entries each, for all rows of the query.
    """
    queries, stride = int(owner.max()) + 1, -(-len(owner) // 4) * 4
    out = bounds.reshape(-1)[: queries * apart].reshape(queries, apart)[:, offset:]
    belongs = (owner[:, None] == np.arange(queries)) * terms[WEIGHT][:, None]
    ends = [*runs[1:, 0].tolist(), lanes]
    wanted = (blocks[:, None] * LANES + np.arange(LANES)).reshape(-1)
    for (first, elements, size, start, table), end in zip(runs.tolist(), ends, strict=True):
        mine = wanted[(wanted >= first) & (wanted < end)]
        stored = codes[start : start + (end - first) * elements * size].reshape(-1, elements, size)
        entries = tables[table : table + size * 256 * stride].reshape(size, 256, stride)
        sums = entries[np.arange(size), stored[mine - first]].sum(axis=2)[..., : len(owner)]
        if least:
            above = sums + terms[SHIFT] - terms[LEAST]
            for q in range(queries):
                out[q, mine] = above[:, :, owner == q].max(axis=2).min(axis=1)
            continue
        best = sums.max(axis=1) + terms[SHIFT]
        out[:, mine] = (_bounded(w, best, threshold, inflate) @ belongs).T


def encode_budget(
    rows: NDArray[np.float32], dim: int, starts: NDArray[np.int64], points: NDArray[np.float32],
    codes: NDArray[np.uint8],
) -> None:  # fmt: skip
    """Write the number of the point that is nearest to each byte's coordinates, from one start to the next.

    For each number of coordinates there are minus half the squares of the 256 points' lengths, and then the
    points' first, second and further coordinates.
    """
    for byte, (a, z) in enumerate(pairwise(starts.tolist())):
        own = points[128 * (z - a - 1) * (z - a + 2) :][: 256 * (z - a + 1)].reshape(-1, 256)
        codes[:, byte] = (rows[:, a:z] @ own[1:] + own[0]).argmax(axis=1)


def from_upper(stored: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return numbers of which the upper halves are stored."""
    return (stored.astype(np.uint32) << 16).view(np.float32)


def _to_upper(numbers: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the upper halves of the least float32 that have one and are not below some numbers."""
    return ((numbers.view(np.uint32) + 0xFFFF) >> 16).astype(np.uint16)


def _levels(codes: NDArray[np.uint8], fine: NDArray[np.uint8] | None) -> NDArray[np.int64]:
    """Return (rows, lanes, dimensions) numbers of five bits, or of nine with the ``fine`` ones."""
    rows = len(codes)
    lines = codes.transpose(0, 2, 1, 3).reshape(rows, LANES, -1, 5, 4).astype(np.int64)
    fifth = lines[..., :1, :] >> ((4 + np.arange(8)) % 8)[:, None] & 1  # eight groups of four dimensions
    upper = 16 * fifth.reshape(rows, LANES, -1) + _from_halves(lines[..., 1:, :])
    if fine is None:
        return upper
    return 16 * upper + _from_halves(fine.transpose(0, 2, 1, 3).astype(np.int64))


def _from_halves(lines: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([lines & 15, lines >> 4], axis=-1).reshape(*lines.shape[:2], -1)


def _looked_up(codes: NDArray[np.uint8], tables: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the sums that tables give for codes (..., bytes): four bytes have 8 tables, low halves first."""
    by_half = tables.reshape(len(tables), -1, 2, 4, 16).swapaxes(2, 3).reshape(len(tables), -1, 16)
    halves = np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)
    each = np.stack(
        [table[np.arange(len(table)), halves].sum(axis=-1, dtype=np.int64) for table in by_half], -1
    )
    return np.asarray(each)


def pack(
    rows: NDArray[Any], half: int, dim: int, slots: NDArray[np.int64], codes: NDArray[np.uint8],
    scales: NDArray[np.float32],
) -> tuple[float, float]:  # fmt: skip
    """Write 8-bit codes of the rows named by slots in lane order.

    Each row is scaled by its largest entry. Returns the largest squared norms of residual and code.
    """
    x, used = rows[np.maximum(slots, 0)].astype(np.float32), slots >= 0
    scale = _peaks(x) / np.float32(127.0)
    scaled = x / scale[..., None]
    levels = np.rint(scaled)
    whole = np.full((*slots.shape, -(-dim // 4) * 4), 128, np.uint8)
    whole[..., :dim] = np.where(used[..., None], levels, 0) + 128.0
    codes[:] = interleave(whole)
    scales[:] = np.where(used, scale, 0)
    lost, kept = ((scaled - levels) ** 2).sum(axis=-1), (levels**2).sum(axis=-1)
    return float(lost[used].max(initial=0)), float(kept[used].max(initial=0))


def _peaks(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(np.maximum(np.abs(rows).max(axis=-1, initial=0.0), np.float32(1e-30)))


def pack_codes(
    rows: NDArray[Any], half: int, dim: int, slots: NDArray[np.int64], fine: bool, codes: NDArray[np.uint8],
    norms: NDArray[np.uint16],
) -> None:  # fmt: skip
    """Write codes of five bits of the elements named by slots in lane order, or the four bits below them.

    An element is cut into 512 cells up to its largest entry; a code stands for the middle of its cells. Norms
    are those of a scale, a residual and a code, or of a residual of nine bits: a hair more than computed, as
    they promise upper bounds.
    """
    x, used = rows[np.maximum(slots, 0)].astype(np.float32), slots >= 0
    stored_scale = _to_upper(_peaks(x) / np.float32(256.0))
    scale = from_upper(stored_scale)
    scaled = x / scale[..., None]
    cell = np.minimum(np.floor(scaled), np.float32(255))
    middles = [np.floor(cell / 16) * 16 + 8, cell + np.float32(0.5)]
    lost, kept = (
        [
            scale * (np.sqrt((values**2).sum(axis=-1)) * np.float32(1.0001) + np.float32(2e-3))
            for values in found
        ]
        for found in ([scaled - middle for middle in middles], middles)
    )
    cells = np.zeros((*slots.shape, -(-dim // PANEL) * PANEL), np.int64)
    cells[..., :dim] = np.where(used[..., None], cell + 256, 0)
    if fine:
        lines, found = _to_halves(cells & 15), _to_upper(lost[1])
    else:
        fifth = (cells >> 8).reshape(*slots.shape, -1, 8, 4) << ((4 + np.arange(8)) % 8)[:, None]
        halves = _to_halves(cells >> 4 & 15).reshape(*slots.shape, -1, 4, 4)
        lines = np.concatenate([fifth.sum(axis=-2, keepdims=True), halves], axis=-2)
        lines = lines.reshape(*slots.shape, -1, 4)
        upper = [stored_scale, _to_upper(lost[0]), _to_upper(np.maximum(*kept))]
        found, used = np.stack(upper, axis=1), used[:, None]
    codes[:] = np.moveaxis(lines, 1, 2)
    norms[:] = np.where(used, found, 0)


def _to_halves(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return lines of four bytes of numbers below 16, eight to a line."""
    eight = numbers.reshape(*numbers.shape[:2], -1, 2, 4)
    return np.asarray(eight[..., 0, :] | eight[..., 1, :] << 4)


def set_similarities(
    bits: int, codes: NDArray[Any], scales: NDArray[np.float32], dim: int, width: int,
    query: NDArray[np.float64], count: int, items: NDArray[np.int64], out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write the float64 similarity of each chosen set vector to each query row."""
    rows: NDArray[Any]
    if bits >= 16:
        rows = codes[items].astype(np.float64)
    else:
        rows = codec.decode_levels(codes[items], dim, bits) * scales[items, None].astype(np.float64)
    out[:] = rows @ query[:count, :dim].T


def take_mask(mask: NDArray[np.bool_], numbers: NDArray[np.int32], out: NDArray[np.bool_]) -> None:
    """Write the entries of a mask by number; False for numbers below zero."""
    if (numbers >= len(mask)).any():
        raise ValueError("take_mask: a number outside the mask")
    out[:] = False
    out[numbers >= 0] = mask[numbers[numbers >= 0]]


def close_lanes(bounds: NDArray[np.float32], is_open: NDArray[np.bool_]) -> None:
    """Put the bounds of closed lanes below zero."""
    bounds[~is_open] = -1.0


def collect(bounds: NDArray[np.float32], low: float, out: NDArray[np.int64]) -> int:
    """Write the indices whose bound reaches ``low``, as far as there is room; return how many there are."""
    found = np.flatnonzero(bounds >= np.float32(low))
    room = min(len(found), len(out))
    out[:room] = found[:room]
    return len(found)


def checksum_blocks(data: Any, block: int, held: int, crc: int, sums: NDArray[np.uint32]) -> int:
    """Write the CRC-32 of each block that bytes complete, and return that of the last block so far.

    The first block has ``held`` bytes already, whose checksum is ``crc``.
    """
    rest, done = memoryview(data).cast("B"), 0
    while rest:
        crc = zlib.crc32(rest[: block - held], crc)
        held, rest = held + len(rest[: block - held]), rest[block - held :]
        if held == block:
            sums[done], done, held, crc = crc, done + 1, 0, 0
    return crc


def damaged_block(
    data: NDArray[np.uint8],
    block: int,
    sums: NDArray[np.uint32],
    seen: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    """Verify the blocks with some bytes that were not ``seen`` before; return the first bad one, or -1."""
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        for i in range(start // block, -(-end // block)):
            if not seen[i] and zlib.crc32(data[i * block : (i + 1) * block].tobytes()) != sums[i]:
                return i
            seen[i] = 1
    return -1


def watch(data: Any) -> int:
    """Do nothing: without the extension, reading a map of a truncated file ends the process."""
    return -1


def unwatch(number: int) -> None:
    """Do nothing, as `watch` does."""


def is_struck(number: int) -> bool:
    """Return that nothing is known of a map."""
    return False
