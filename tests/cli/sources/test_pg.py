"""`setnet pg` as a user runs it: exit codes and what is printed, on a real server."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import answered, called
from setnet.index import SetIndex
from setnet.library import Example, Library
from sets_world import sets_world

WORLD = sets_world(30)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "items.npz"
    texts = [json.dumps(details) for details in WORLD.attributes]
    np.savez(path, ids=WORLD.ids, elements=WORLD.elements, counts=WORLD.counts, attributes=texts)
    np.savez(tmp_path / "query.npz", query=WORLD.people[:2])
    return path


def test_from_nothing_to_an_answer(uri: str, file: Path) -> None:
    query = file.with_name("query.npz")
    assert "`setnet pg init` makes them" in called("pg", "search", uri, "--query", query, code=2)[1]
    made = answered("pg", "init", uri, "--head", "sface-128", "--partitions", 2)
    assert (made["dim"], made["partitions"], made["schema"]) == (128, 2, "setnet")
    assert answered("pg", "load", uri, file, "--batch", 7) == {
        "items": 30, "elements": len(WORLD.elements), "batches": 5,
    }  # fmt: skip
    out, err = called("pg", "load", uri, file)
    assert "30 items with" in out
    assert "30 of 30 items stored" in err
    hits = answered("pg", "search", uri, "--query", query, "-k", 5)["hits"]
    assert len(hits) == 5
    assert answered("pg", "cells", uri, "--count", 4) == {"cells": 4}
    for mode in ("cells", "exact"):
        assert answered("pg", "search", uri, "--query", query, "-k", 5, "--mode", mode)["hits"] == hits
    where = '{"year": {">=": 2010}, "place": "p1"}'
    few = answered("pg", "search", uri, "--query", query, "--where", where)["hits"]
    assert {hit["id"] for hit in few} == {f"photo-{i:04d}" for i in range(30) if i % 20 >= 10 and i % 3 == 1}
    assert "score" in called("pg", "search", uri, "--query", query)[0]
    assert answered("pg", "delete", uri, hits[0]["id"]) == {"deleted": 1}
    assert "is not stored: nothing was deleted" in called("pg", "delete", uri, hits[0]["id"], code=2)[1]
    assert answered("pg", "delete", uri, hits[0]["id"], "--missing-ok") == {"deleted": 0}
    nobody = called("pg", "search", uri, "--query", query, "--where", '{"year": 1}', code=1)
    assert nobody == ("", "no item fits\n")


def test_saved_people_and_an_index_as_the_source(uri: str, tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "index", dim=128) as index:
        index.add(*WORLD.part(0, 30))
    with Library.create(tmp_path / "library") as library:
        for name, row in zip(("Ann", "Ben"), WORLD.people[:2], strict=True):
            library.people.add(name, [Example(row)])
    called("pg", "init", uri)
    assert answered("pg", "load", uri, tmp_path / "index")["items"] == 30
    place = ("--library", tmp_path / "library")
    hits = answered("pg", "search", uri, "ann", "ben", "-k", 5, *place)["hits"]
    np.savez(tmp_path / "query.npz", query=WORLD.people[:2])
    assert answered("pg", "search", uri, "--query", tmp_path / "query.npz", "-k", 5)["hits"] == hits
    alone = answered("pg", "search", uri, "ann", "--without", "ben", "--at-least", 1, *place)["hits"]
    anywhere = answered("pg", "search", uri, "ann", "--at-least", 1, *place)["hits"]
    assert {hit["id"] for hit in alone} <= {hit["id"] for hit in anywhere}


def test_bad_sources_and_queries_are_one_sentence(uri: str, file: Path) -> None:
    called("pg", "init", uri)
    folder = file.parent
    np.savez(folder / "counts.npz", ids=WORLD.ids, elements=WORLD.elements, counts=WORLD.counts + 1)
    np.savez(folder / "texts.npz", ids=["a"], elements=WORLD.people[:1], counts=[1], attributes=["[1]"])
    np.savez(folder / "nan.npz", ids=["a"], elements=np.full((1, 128), np.nan), counts=[1])
    np.savez(folder / "wide.npz", ids=["a"], elements=np.ones((1, 64)), counts=[1])
    (folder / "broken.npz").write_bytes(b"PK no archive")
    for name, message in {
        "counts": "must be a whole number for each of 30 ids",
        "texts": "'attributes' must be JSON objects as texts",
        "nan": "NaN",
        "wide": "expects (n, 128)",
        "broken": "not a readable .npz file",
        "none": "no such file or folder",
    }.items():
        out, err = called("pg", "load", uri, folder / f"{name}.npz", code=2)
        assert (out, err.count("\n")) == ("", 1)
        assert message in err
    assert "name people, or give vectors" in called("pg", "search", uri, code=2)[1]
    assert "no such file" in called("pg", "search", uri, "--query", folder / "x.npz", code=2)[1]
    assert "no array 'query'" in called("pg", "search", uri, "--query", file, code=2)[1]
    query = folder / "query.npz"
    assert "takes a JSON object" in called("pg", "search", uri, "--query", query, "--where", "x", code=2)[1]
    assert "unknown mode" in called("pg", "search", uri, "--query", query, "--mode", "x", code=2)[1]
    secret = called("pg", "init", "postgresql://me:s3cret@/x?host=/nowhere", code=2)[1]
    assert "s3cret" not in secret
    assert secret.count("\n") == 1
