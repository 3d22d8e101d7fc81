"""Checks what a caller wants to add, and turns it into a batch of rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.errors import InvalidInputError
from setnet.index.arguments import check_vectors, is_unicode
from setnet.index.storage.attributes import valid_attributes
from setnet.index.storage.segments.batch import Batch
from setnet.index.storage.shape import Shape
from setnet.sets import Aggregator, codec

ID_LIMIT = 512  # bytes
MOST_ELEMENTS = 2**31 - 1  # of one item
CHECKED_AT_ONCE = 65536  # rows: keeps temporaries small


def check_ids(ids: Sequence[str]) -> list[str]:
    """Return the ids as a list, or raise an error naming the first bad one."""
    if isinstance(ids, (str, bytes)):
        raise InvalidInputError(f"ids must be a list of strings, not the single string {ids!r}")
    for i in ids:
        if not isinstance(i, str):
            raise InvalidInputError(f"id {i!r} is a {type(i).__name__}: ids are strings")
        if not is_unicode(i):
            raise InvalidInputError(f"id {i!r} is not valid Unicode text")
        size = len(i.encode())
        if not 1 <= size <= ID_LIMIT:
            raise InvalidInputError(f"id {i[:40]!r} has {size} bytes: ids have 1 to {ID_LIMIT}")
        if "\0" in i:
            raise InvalidInputError(f"id {i!r} holds a NUL character")
    return list(ids)


def checked_batch(
    ids: Sequence[str],
    elements: ArrayLike,
    counts: ArrayLike,
    attributes: Sequence[Mapping[str, Any] | None] | None,
    set_vectors: ArrayLike | None,
    shape: Shape,
    head: Aggregator | None,
) -> tuple[Batch, list[dict[str, str | int | float]] | None]:
    """Return the rows to store (their sequence numbers still unset) and the attributes of each."""
    names = check_ids(ids)
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = next(i for i in names if i in seen or seen.add(i))  # type: ignore[func-returns-value]
        raise InvalidInputError(f"id {twice!r} is given twice in one call")
    sizes = _counts(counts, names)
    rows = _elements(elements, shape, int(sizes.sum()))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    details = None
    if attributes is not None:
        if len(attributes) != len(names):
            raise InvalidInputError(f"{len(attributes)} attribute mappings given for {len(names)} ids")
        details = [valid_attributes(a or {}, i) for i, a in zip(names, attributes, strict=True)]
    codes, scales = _sets(set_vectors, rows, sizes, shape, head, names)
    texts = [json.dumps(d, sort_keys=True) if d else "" for d in details] if details else None
    return Batch(names, np.empty(len(names), np.int64), sizes, offsets, rows, texts, codes, scales), details


def _counts(counts: ArrayLike, ids: list[str]) -> NDArray[np.int64]:
    sizes = np.asarray(counts)
    if sizes.ndim != 1 or len(sizes) != len(ids):
        raise InvalidInputError(
            f"counts of shape {sizes.shape} given for {len(ids)} ids: one count per id expected"
        )
    if sizes.size and not np.issubdtype(sizes.dtype, np.integer):
        raise InvalidInputError(f"counts must be whole numbers, not {sizes.dtype}")
    if sizes.size and sizes.max() > MOST_ELEMENTS:
        raise InvalidInputError(
            f"count {sizes.max()} of id {ids[int(sizes.argmax())]!r} is more than {MOST_ELEMENTS} elements"
        )
    if sizes.size and sizes.min() < 0:
        raise InvalidInputError(f"count {sizes.min()} of id {ids[int(sizes.argmin())]!r} is negative")
    return sizes.astype(np.int64)


def _elements(elements: ArrayLike, shape: Shape, expected: int) -> NDArray[Any]:
    given = np.asarray(elements)
    if given.size == 0 and expected == 0:
        return np.empty((0, shape.dim), shape.precision)
    if given.dtype.kind not in "fiu":
        raise InvalidInputError(f"elements must be real numbers, not {given.dtype}")
    if given.ndim != 2 or given.shape[1] != shape.dim:
        raise InvalidInputError(f"elements have shape {given.shape}: this index expects (n, {shape.dim})")
    if len(given) != expected:
        raise InvalidInputError(f"counts add up to {expected}, but {len(given)} elements are given")
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(given, dtype=shape.precision)
    for at in range(0, len(rows), CHECKED_AT_ONCE):
        part = rows[at : at + CHECKED_AT_ONCE]
        if not _are_good_halves(part):
            name = partial(_element, at, shape.precision)
            check_vectors(part.astype(np.float32, copy=False), shape.dim, name)
    return rows


def _element(first: int, precision: str, row: int) -> str:
    return f"element {first + row} (as {precision})"


def _are_good_halves(rows: NDArray[Any]) -> bool:
    """Whether rows are float16, finite and not zero, read from their bits: converting them takes longer."""
    if rows.dtype != np.float16:
        return False
    largest = (rows.view(np.uint16) & 0x7FFF).max(axis=1)
    return bool((largest > 0).all() and (largest < 0x7C00).all())


def _sets(
    given: ArrayLike | None,
    rows: NDArray[Any],
    counts: NDArray[np.int64],
    shape: Shape,
    head: Aggregator | None,
    ids: list[str],
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return the set vectors' codes and scales: given by the caller, or made by the head."""
    sets = shape.sets
    if sets is None:
        return np.empty((len(counts), 0), np.uint8), np.ones(len(counts), np.float32)
    if given is None:
        if head is None:
            raise InvalidInputError(
                f"this index holds set vectors named {sets.name!r} that the caller makes: pass set_vectors=, "
                "or open the index with the head that makes them"
            )
        codes = head.encode(rows.astype(np.float32, copy=False), counts)
        return codes, _scales(codes, np.ones(len(codes)), sets.dim, sets.bits)
    with np.errstate(over="ignore"):
        vectors = np.asarray(given, dtype=np.float32)
    if vectors.shape != (len(ids), sets.dim):
        raise InvalidInputError(f"set vectors have shape {vectors.shape}, expected ({len(ids)}, {sets.dim})")
    filled = np.flatnonzero(counts > 0)
    if len(filled):
        check_vectors(vectors[filled], sets.dim, lambda row: f"set vector of id {ids[filled[row]]!r}")
    codes = codec.encode(vectors, sets.bits)
    return codes, _scales(codes, np.linalg.norm(vectors, axis=1), sets.dim, sets.bits)


def _scales(codes: NDArray[np.uint8], length: NDArray[Any], dim: int, bits: int) -> NDArray[np.float32]:
    """Return what turns levels into vectors of the given lengths; floats need nothing."""
    scales = np.ones(len(codes), np.float32)
    for at in range(0, len(codes) if bits < 16 else 0, CHECKED_AT_ONCE):
        part = slice(at, at + CHECKED_AT_ONCE)
        norm = np.linalg.norm(codec.levels_of(codes[part], dim, bits), axis=1)
        scales[part] = length[part] / np.maximum(norm, 0.5)  # less has only the code of the zero vector
    return scales
