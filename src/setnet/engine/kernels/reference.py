"""The kernels in plain NumPy: the oracle of the tests, and what answers when the extension is not built.

Each function takes the arguments of its twin in ``_kernels`` and computes the same by the simplest means.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels.lanes import LANES, Part, interleave
from setnet.engine.kernels.linkage_reference import linkage as linkage
from setnet.heads import codec
from setnet.heads.bit_codes import BitCodec


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


def evaluate(
    rows: NDArray[Any], half: int, dim: int, offsets: NDArray[np.int64], query: NDArray[np.float64],
    first_row: NDArray[np.int64], combine: int, without: int, w: float, b: float,
    shift: NDArray[np.float64], least: NDArray[np.float64], items: NDArray[np.int64],
    score: NDArray[np.float64], similarity_sum: NDArray[np.float64], similarity: NDArray[np.float64],
    element: NDArray[np.int32], matched: NDArray[np.int32], unmatched: NDArray[np.uint8],
    unwanted: NDArray[np.uint8],
) -> None:  # fmt: skip
    """Score items one by one: float64 similarities, greedy pairs, the sum of their probabilities.

    ``shift`` is added to the similarities of each query element where they are scored and ordered; ``least``
    is the similarity from which each query element, and then each unwanted vector, is matched.
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
            key = np.stack([_sigmoid(w * (g + moved) + b).mean(axis=0) for g, moved in rows_of])
            pair = np.stack([g.mean(axis=0) for g in groups])
        else:
            pair = np.stack([g.max(axis=0) for g in groups])
            key = pair + shift[:, None]
        element[i], similarity[i], score[i], similarity_sum[i], matched[i] = -1, 0.0, 0.0, 0.0, 0
        for p, e in greedy_pairs(key):
            s = pair[p, e]
            element[i, p], similarity[i, p] = e, s
            score[i] += key[p, e] if combine == 1 else _sigmoid(np.asarray(w * (s + shift[p]) + b))
            similarity_sum[i] += s
            matched[i] += s >= least[p]
        unmatched[i] = bool((pair < least[:size, None]).all(axis=0).any())
        unwanted[i] = bool(without and (others @ stored.T >= least[size:, None]).any())


def scan(
    bits: int, codes: NDArray[np.uint8], low: NDArray[np.uint8], scales: NDArray[Any],
    row_start: NDArray[np.int64], first_wide: int, groups: int, query: NDArray[np.int8],
    start: NDArray[np.int32], step: NDArray[np.float32], slack: NDArray[np.float32],
    shift: NDArray[np.float32], weight: NDArray[np.float32], w: float, threshold: float, inflate: float,
    owner: NDArray[np.int64], blocks: NDArray[np.int64], bounds: NDArray[np.float32], offset: int, apart: int,
    packed: bool = False,
) -> None:  # fmt: skip
    """Write the bounds of all lanes of blocks, each query's in its row.

    ``low`` has the low halves of bytes whose high halves are ``codes``; empty where those are all. ``owner``
    is the query of each row of codes; query i's bounds begin at i * apart + offset, in the order of blocks,
    or those of the chosen ones only where ``packed``. A ``first_wide`` of -1 says that one-bit codes lie row
    by row, 16 items to a block.
    """
    queries = int(owner.max()) + 1
    out = bounds.reshape(-1)[: queries * apart].reshape(queries, apart)[:, offset:]
    belongs = (owner[:, None] == np.arange(queries)) * weight[:, None]
    for i, block in enumerate(blocks.tolist()):
        place = (i if packed else block) * LANES
        if first_wide < 0:
            items = slice(block * LANES, min(len(codes), (block + 1) * LANES))
            sums = _looked_up(codes[items], query)
            best = scales[items, None] * (step * sums.astype(np.float32) + slack) + shift
            out[:, place : place + items.stop - items.start] = (
                _sigmoid(w * (best - threshold) + inflate) @ belongs
            ).T
            continue
        rows = slice(row_start[block], row_start[block + 1]) if len(row_start) else slice(block, block + 1)
        lane_scales = scales.reshape(-1, LANES)[rows, :, None]
        if bits == 1:
            sums = _looked_up(codes[rows].swapaxes(1, 2), query)
            lane_scales = (lane_scales.astype(np.uint32) << 16).view(np.float32)
        else:
            raw = codes[rows].transpose(0, 2, 1, 3).astype(np.int64)  # row, lane, group, byte
            if bits == 4:
                raw = np.concatenate([raw & 15, raw >> 4], axis=3)
            if len(low):
                rest = low[rows].transpose(0, 2, 1, 3)
                raw = raw * 16 + np.concatenate([rest & 15, rest >> 4], axis=3)
            sums = raw.reshape(raw.shape[0], LANES, -1) @ query.T.astype(np.int64) + start
        best = (lane_scales * (step * sums.astype(np.float32) + slack)).max(axis=0)
        if block >= first_wide:
            best[:] = best.max(axis=0)
        total = _sigmoid(w * (best + shift - threshold) + inflate) @ belongs
        out[:, place : place + LANES] = total.T


def _looked_up(codes: NDArray[np.uint8], tables: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the sums that tables give for codes (..., bytes): four bytes have 8 tables, low halves first."""
    by_half = tables.reshape(len(tables), -1, 2, 4, 16).swapaxes(2, 3).reshape(len(tables), -1, 16)
    halves = np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)
    each = np.stack(
        [table[np.arange(len(table)), halves].sum(axis=-1, dtype=np.int64) for table in by_half], -1
    )
    return np.asarray(each)


def pack(
    rows: NDArray[Any], half: int, dim: int, slots: NDArray[np.int64], part: int, codes: NDArray[np.uint8],
    scales: NDArray[np.float32],
) -> tuple[float, float]:  # fmt: skip
    """Write a part of the codes of the elements named by slots in lane order, see `Part`.

    Returns the largest squared norms of residual and code.
    """
    scale, levels, lost, kept = _quantised(rows[np.maximum(slots, 0)], part == Part.HIGH)
    used = slots >= 0
    whole = np.full((*slots.shape, -(-dim // 8) * 8), 128, np.uint8)
    whole[..., :dim] = np.where(used[..., None], levels, 0) + 128.0
    first, second = np.moveaxis(whole.reshape(*slots.shape, -1, 2, 4), -2, 0)
    if part == Part.WHOLE:
        codes[:] = interleave(np.ascontiguousarray(whole[..., : -(-dim // 4) * 4]))
    elif part == Part.HIGH:
        codes[:] = np.moveaxis((first >> 4) | (second & 0xF0), 1, 2)
    else:
        codes[:] = np.moveaxis((first & 15) | (second << 4), 1, 2)
    scales[:] = np.where(used, scale, 0)
    return float(lost[used].max(initial=0)), float(kept[used].max(initial=0))


def _quantised(
    rows: NDArray[Any], high: bool
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return scale, levels and the squared norms of what is lost and kept: x = scale * (level + residual).

    Each row is scaled by its largest entry. The high nibble alone stands for the middle of its 16 levels.
    """
    x = rows.astype(np.float32)
    scale = np.maximum(np.abs(x).max(axis=-1, initial=0.0), np.float32(1e-30)) / np.float32(127.0)
    scaled = x / scale[..., None]
    levels = np.rint(scaled)
    kept = np.floor(levels / 16) * 16 + 7.5 if high else levels
    return scale, levels, ((scaled - kept) ** 2).sum(axis=-1), (kept**2).sum(axis=-1)


def pack_bits(
    rows: NDArray[Any], half: int, dim: int, slots: NDArray[np.int64], centre: NDArray[np.float32],
    steps: NDArray[np.float32], codes: NDArray[np.uint8], factors: NDArray[np.uint16],
) -> None:  # fmt: skip
    """Write the one-bit codes and factors of the elements named by slots in lane order; 0 in empty lanes."""
    used = (slots >= 0).reshape(-1)
    bits, scales = BitCodec(centre).encode(rows[np.maximum(slots, 0).reshape(-1)].astype(np.float32))
    bits[~used], scales[~used] = 0, 0
    codes[:] = bits.reshape(*slots.shape, -1).swapaxes(1, 2)
    factors[:] = scales.reshape(slots.shape)


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


def collect(bounds: NDArray[np.float32], low: float, out: NDArray[np.int64]) -> int:
    """Write the indices whose bound reaches ``low``, as far as there is room; return how many there are."""
    found = np.flatnonzero(bounds >= np.float32(low))
    room = min(len(found), len(out))
    out[:room] = found[:room]
    return len(found)
