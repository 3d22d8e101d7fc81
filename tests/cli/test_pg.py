"""`setnet pg` as a user runs it: exit codes and what is printed, on a real server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.library import Example, Library
from tests.support.command_line import answered, called
from tests.support.sets_world import fill_table, sets_world

pytestmark = pytest.mark.xdist_group("postgres")

WORLD = sets_world(30)


@pytest.fixture
def query(tmp_path: Path) -> Path:
    path = tmp_path / "query.npz"
    np.savez(path, query=WORLD.people[:2])
    return path


def test_an_answer(uri: str, query: Path) -> None:
    assert "no extension pgvector" in called("pg", "search", uri, "--query", query, code=2)[1]
    fill_table(uri, WORLD)
    hits = answered("pg", "search", uri, "--query", query, "-n", 5)["hits"]
    assert len(hits) == 5
    columns = ("--table", "public.faces", "--item", "item", "--face", "face", "--vector", "vector")
    assert answered("pg", "search", uri, "--query", query, "-n", 5, *columns)["hits"] == hits
    where = '{"year": {">=": 2010}, "place": "p1"}'
    few = answered("pg", "search", uri, "--query", query, "--where", where)["hits"]
    assert {hit["id"] for hit in few} == {f"photo-{i:04d}" for i in range(30) if i % 20 >= 10 and i % 3 == 1}
    assert "score" in called("pg", "search", uri, "--query", query)[0]
    nobody = called("pg", "search", uri, "--query", query, "--where", '{"year": 1}', code=1)
    assert nobody == ("", "no item fits\n")


def test_saved_people(uri: str, query: Path, tmp_path: Path) -> None:
    fill_table(uri, WORLD)
    with Library.create(tmp_path / "library") as library:
        for name, row in zip(("Ann", "Ben"), WORLD.people[:2], strict=True):
            library.people.add(name, [Example(row)])
    place = ("--library", tmp_path / "library")
    hits = answered("pg", "search", uri, "ann", "ben", "-n", 5, *place)["hits"]
    assert answered("pg", "search", uri, "--query", query, "-n", 5)["hits"] == hits
    alone = answered("pg", "search", uri, "ann", "--without", "ben", "--at-least", 1, *place)["hits"]
    anywhere = answered("pg", "search", uri, "ann", "--at-least", 1, *place)["hits"]
    assert {hit["id"] for hit in alone} <= {hit["id"] for hit in anywhere}


def test_bad_queries_are_one_sentence(uri: str, query: Path) -> None:
    fill_table(uri, WORLD)
    (query.parent / "broken.npz").write_bytes(b"PK no archive")
    np.savez(query.parent / "other.npz", vectors=WORLD.people[:2])
    np.savez(query.parent / "flat.npz", query=WORLD.people[0])
    for arguments, message in {
        (): "name people, or give vectors",
        ("--query", query.parent / "x.npz"): "no such file",
        ("--query", query.parent / "broken.npz"): "not a readable .npz file",
        ("--query", query.parent / "other.npz"): "no array 'query'",
        ("--query", query.parent / "flat.npz"): "must be one row of numbers per query element",
        ("--query", query, "--where", "x"): "takes a JSON object",
        ("--query", query, "--table", "x"): "has no table 'x'",
        ("--query", query, "--item", "x"): "unknown column of faces 'x'",
    }.items():
        out, err = called("pg", "search", uri, *arguments, code=2)
        assert (out, err.count("\n")) == ("", 1)
        assert message in err
    secret = called("pg", "search", "postgresql://me:s3cret@/x?host=/nowhere", "--query", query, code=2)[1]
    assert "s3cret" not in secret
    assert secret.count("\n") == 1
