"""Documents of token vectors for PyLate; the last test is with PyLate, in an environment of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet.connect import PyLateIndex
from setnet.engine import Mode
from setnet.errors import InvalidInputError

DIM = 16


def documents(n: int, seed: int = 0) -> tuple[list[str], list[NDArray[np.float32]]]:
    rng = np.random.default_rng(seed)
    drawn = [rng.normal(size=(rng.integers(1, 30), DIM)).astype(np.float16) for _ in range(n)]
    return [f"d{i}" for i in range(n)], [one.astype(np.float32) for one in drawn]


def best(query: NDArray[Any], held: dict[str, NDArray[Any]], k: int) -> list[dict[str, Any]]:
    scores = {
        name: float((query.astype(np.float64) @ rows.T).max(axis=1).sum()) for name, rows in held.items()
    }
    first = sorted(scores, key=lambda name: -scores[name])[:k]
    return [{"id": name, "score": pytest.approx(scores[name])} for name in first]


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_answers_are_the_sums_of_maxima(tmp_path: Path, mode: Mode) -> None:
    ids, vectors = documents(300)
    queries = documents(3, seed=1)[1]
    index = PyLateIndex(tmp_path / "tokens", mode=mode)
    assert index(queries) == [[], [], []]
    assert index.add_documents(ids, vectors, batch_size=70) is index
    held = dict(zip(ids, vectors, strict=True))
    assert index(queries, k=5) == [best(query, held, 5) for query in queries]
    index.remove_documents(ids[:100])
    index.add_documents(["d200"], [queries[0]])
    held = {name: held[name] for name in ids[100:]} | {"d200": queries[0].astype(np.float16)}
    assert index(queries[0], k=4) == [best(queries[0], held, 4)]
    some = ["d150", "d3", "d200", "d299"]  # one of them is gone
    assert index(queries, subset=some)[1] == best(queries[1], {n: held[n] for n in some if n in held}, 10)
    each = [["d150"], ["d151", "d152"], []]
    assert [len(hits) for hits in index(queries, subset=each)] == [1, 2, 0]
    index.close()

    again = PyLateIndex(tmp_path / "tokens")
    assert again(queries, k=2) == [best(query, held, 2) for query in queries]
    ((first,), none) = again.get_documents_embeddings([["d110"], []])
    np.testing.assert_array_equal(first, held["d110"])
    assert none == []
    again.close()
    assert PyLateIndex(tmp_path / "tokens", override=True)(queries) == [[], [], []]


def test_tensors_are_taken_and_what_fills_up_a_batch_is_left_out(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    padded = torch.zeros(2, 4, DIM)
    padded[0, :2], padded[1, :4] = torch.eye(DIM)[:2], torch.eye(DIM)[:4]
    index = PyLateIndex(tmp_path / "tokens").add_documents(["a", "b"], padded.requires_grad_())
    assert [len(rows) for rows in index.get_documents_embeddings([["a", "b"]])[0]] == [2, 4]
    assert index(padded.bfloat16(), k=1) == [[{"id": "a", "score": 2.0}], [{"id": "b", "score": 4.0}]]
    with pytest.raises(InvalidInputError, match="an array for each of 1 ids"):
        index.add_documents("c", padded)
    index.close()


@pytest.mark.soak
def test_pylate_retrieves_with_it(tmp_path: Path) -> None:
    base = pytest.importorskip("pylate.indexes.base", reason="PyLate has an environment of its own").Base
    from pylate import rank, retrieve

    assert all(hasattr(PyLateIndex, name) for name in base.__abstractmethods__)
    ids, vectors = documents(200)
    queries = documents(4, seed=1)[1]
    index = PyLateIndex(tmp_path / "tokens").add_documents(documents_ids=ids, documents_embeddings=vectors)
    found = retrieve.ColBERT(index=index).retrieve(queries_embeddings=queries, k=5)
    held = index.get_documents_embeddings([ids] * len(queries))
    expected = rank.rerank([ids] * len(queries), queries, held)
    for ours, theirs in zip(found, expected, strict=True):
        assert [hit["id"] for hit in ours] == [hit["id"] for hit in theirs[:5]]
        assert [hit["score"] for hit in ours] == pytest.approx([hit["score"] for hit in theirs[:5]], rel=1e-4)
    index.close()
