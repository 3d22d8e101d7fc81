"""Budget codes: the kernel against its twin, and bounds that no similarity exceeds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet.engine.budget import element_bytes, element_codec, rotation, scan_tables, turned
from setnet.engine.kernels import backend, reference
from setnet.engine.query import Query
from setnet.engine.scan import SHIFT, terms_of
from setnet.heads import unit
from setnet.heads.logistic import Logistic


def vectors(n: int, dim: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(dim)
    return unit((rng.normal(size=(n, dim)) * np.linspace(2, 0.2, dim) + 0.3).astype(np.float32))


@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_the_kernel_bounds_what_its_twin_bounds(level: str, size: int, least: bool) -> None:
    rng, budget, dim = np.random.default_rng(size), 30, 24
    counts = np.repeat([1, 2, 3, 7, 40], [33, 20, 1, 4, 2])
    rows = vectors(int(counts.sum()), dim)
    parts = np.split(rows, np.cumsum(counts)[:-1])
    codecs = [element_codec(element_bytes(budget, n, dim), dim) for n in counts.tolist()]
    stored = [codec.encode(part) for codec, part in zip(codecs, parts, strict=True)]
    owner = np.sort(rng.integers(0, 2, size))
    owner -= owner[0]
    query = Query.of([rows[i : i + 1] for i in rng.integers(0, len(rows), size)], dim, Logistic(20.0, -8.0))
    wanted = turned(query).wanted
    elements, first = np.unique(counts, return_index=True)
    sizes = [element_bytes(budget, n, dim) for n in elements.tolist()]
    tables, starts, off = scan_tables(wanted, sizes)
    begin = np.cumsum([0, *(part.size for part in stored)])
    terms = terms_of(query)
    terms[SHIFT] = off
    runs = np.column_stack([first, elements, sizes, begin[first], starts])
    codes = np.concatenate([part.reshape(-1) for part in stored])
    blocks = rng.permutation(-(-len(counts) // 16))
    found, expected = (np.zeros((2, 3 + len(blocks) * 16), np.float32) for _ in range(2))
    for kernels, out in ((backend.kernels, found), (reference, expected)):
        given = (codes, runs, len(counts), tables, terms, 20.0, 0.4, 1e-6, owner, blocks)
        kernels.scan_budget(*given, out, 3, out.shape[1], least)
    assert found == pytest.approx(expected, abs=2e-6)
    similarity = [
        wanted @ codec.coordinates(part).astype(np.float64).T
        for codec, part in zip(codecs, stored, strict=True)
    ]
    for q in range(owner.max() + 1):
        own = np.flatnonzero(owner == q)
        if least:
            exact = [float((s[own] - query.least[own, None]).max(axis=0).min()) for s in similarity]
        else:
            exact = [float(query.logistic.probability(s[own].max(axis=1)).sum()) for s in similarity]
        assert (found[q, 3 : 3 + len(counts)] >= exact).all()
        assert found[q, 3 : 3 + len(counts)] == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("size", [2, 7, 24])
def test_the_kernel_finds_the_nearest_points(level: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, codec = vectors(400, 24), element_codec(size, 24)
    found = codec.encode(rows)
    monkeypatch.setattr(backend, "kernels", reference)
    assert (found == codec.encode(rows)).mean() > 0.999, "two points may be as near"


@pytest.mark.parametrize("dim", [1, 2, 5, 24, 128, 300])
def test_more_bytes_lose_less_of_vectors(dim: int) -> None:
    assert rotation(dim) @ rotation(dim).T == pytest.approx(np.eye(dim), abs=1e-12)
    rows = vectors(500, dim)
    sizes = sorted({element_bytes(64, n, dim) for n in range(1, 40)})
    codecs = [element_codec(size, dim) for size in sizes]
    decoded = [codec.decode(codec.encode(rows)) for codec in codecs]
    right = [float((unit(one) * rows).sum(axis=1).mean()) for one in decoded]
    assert right == sorted(right)
    if sizes[-1] == dim > 2:
        assert right[-1] > 0.999, "a byte for each dimension is nearly all"


def test_strangers_are_as_similar_by_few_bytes_as_by_floats() -> None:
    rows = unit(np.random.default_rng(0).normal(size=(3000, 64)).astype(np.float32))
    for size in (2, 4, 7, 16, 64):
        codec = element_codec(size, 64)
        decoded = codec.decode(codec.encode(rows[1000:]))
        assert (rows[:1000] @ decoded.T).std() * 8 == pytest.approx(1.0, abs=0.06)


def test_the_kernel_refuses_runs_outside_the_codes() -> None:
    tables, terms = np.zeros(2 * 256 * 4, np.float32), np.zeros((7, 1), np.float32)
    bounds, zero = np.zeros(16, np.float32), np.zeros(1, np.int64)
    for run, lanes in (
        ([0, 1, 2, 0, 0], 9),
        ([0, 1, 2, 9, 0], 8),
        ([1, 1, 2, 0, 0], 8),
        ([0, 1, 3, 0, 0], 5),
    ):
        if backend.kernels is not reference:
            with pytest.raises(ValueError, match="do not fit"):
                backend.kernels.scan_budget(
                    np.zeros(16, np.uint8), np.array([run]), lanes, tables, terms, 1.0, 0.0, 0.0, zero, zero,
                    bounds, 0, 16,
                )  # fmt: skip
