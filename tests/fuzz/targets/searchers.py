"""Requests that a searcher gets and answers that its client gets, damaged and crafted."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.connect import searchers
from setnet.connect.searchers import Searcher
from setnet.engine import Collection
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import json_bytes, mutated_bytes, mutated_json
from tests.fuzz.target import Function, attempt
from tests.fuzz.targets.npz_files import WORDS, crafted

DIM = 4
OPTIONS: Any = {
    "where": {"year": {">=": 2003}, "place": ["here", "there"]},
    "at_least": 1,
    "only": False,
    "examples": "max",
    "first": "sets",
    "candidates": 3,
    "known": {"item 1": [(0, 0, True)]},
    "without": np.eye(DIM)[3:],
    "attributes": True,
}


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that answers a request, or reads an answer."""
    rng = np.random.default_rng(3)
    collection = Collection.create(folder / "collection", DIM)
    for start in (0, 8):
        values = [{"year": 2000 + i, "place": "here"} for i in range(8)]
        vectors = rng.normal(size=(16, DIM)).astype(np.float32)
        collection.add([f"item {start + i}" for i in range(8)], vectors, [2] * 8, values)
    searcher = Searcher(folder / "collection", (1, 2))
    queries: Any = [np.eye(DIM)[:2], [np.eye(DIM)[:2], np.eye(DIM)[2:]]]
    requests = [
        searchers._request(queries, 3, "exact", {}, None),
        searchers._request(queries, 3, "fast", OPTIONS, None),
        searchers._request(queries, 3, "set", {"attributes": True}, None),
    ]
    answers = [searcher.answer(request) for request in requests]

    def received(answer: bytes) -> None:
        call = searchers._Call(searchers._Address("http://localhost", None, 1.0), True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(call, "_post", lambda _: (200, answer))
            call.answer(b"", None)

    def run(data: bytes) -> None:
        choices = Choices(data)
        is_request = choices.below(2)
        message = choices.pick(requests if is_request else answers)
        with np.load(io.BytesIO(message)) as file:
            members = {name: file[name] for name in file.files}
        if choices.below(2):
            facts = mutated_json(choices, json.loads(members["facts"].tobytes()))
            members["facts"] = np.frombuffer(json_bytes(facts), np.uint8)
            out = io.BytesIO()
            np.savez(out, **members)
            message = out.getvalue()
        elif choices.below(3):
            message = crafted(choices, {name: _npy(array) for name, array in members.items()})
        else:
            message = mutated_bytes(choices, message, WORDS)
        attempt(lambda: searcher.answer(message) if is_request else received(message))

    try:
        yield run
    finally:
        searcher.close()


def _npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()
