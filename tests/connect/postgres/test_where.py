from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postgres_server import PostgresServer
from setnet.connect import PostgresSets
from setnet.engine import SetIndex
from setnet.errors import InvalidInputError

NUMBERS: list[Any] = [0, 1, -1, 2, 2.0, 2.5, -0.5, 1e300, 2**53, None]
TEXTS: list[Any] = [
    "", "a", "A", "b", "ab", "aé", "é", "z", "2", "10", "%", "_", "'", '"', "\\", "Ω", "\U0001f4f7",
    "\uffff", None,
]  # fmt: skip
ITEMS = [{"n": number, "t": text} for number in NUMBERS for text in TEXTS]
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@pytest.fixture(scope="module")
def stores(
    server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[PostgresSets, SetIndex]]:
    """The same items, one for each pair of values, in PostgreSQL and in an index."""
    uri = server.new_database("where")
    with psycopg.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION vector")
        cursor.execute(
            'CREATE TABLE faces (item int, face int, vector vector(8), n float8, t text COLLATE "C")'
        )
        cursor.executemany(
            "INSERT INTO faces VALUES (%s, 0, array_fill(1, ARRAY[8])::vector, %s, %s)",
            [(i, item["n"], item["t"]) for i, item in enumerate(ITEMS)],
        )
    path: Path = tmp_path_factory.mktemp("where") / "index"
    with PostgresSets(uri) as sets, SetIndex.create(path, dim=8) as index:
        ids = [f"{i}" for i in range(len(ITEMS))]
        index.add(ids, np.ones((len(ITEMS), 8)), [1] * len(ITEMS), ITEMS)
        yield sets, index


def found(store: Any, where: dict[str, Any], **options: Any) -> set[str]:
    return {hit.id for hit in store.search(np.ones((1, 8)), k=len(ITEMS), where=where, **options)}


def operands(values: list[Any]) -> st.SearchStrategy[tuple[str, Any]]:
    some = st.sampled_from([value for value in values if value is not None])
    one = st.tuples(st.sampled_from(COMPARISONS), some)
    return st.one_of(one, st.tuples(st.just("in"), st.lists(some, max_size=4)))


texts = st.one_of(operands(TEXTS), st.tuples(st.just("prefix"), st.sampled_from(TEXTS[:-1])))


@given(st.lists(operands(NUMBERS), min_size=1, max_size=2), st.lists(texts, min_size=1, max_size=2))
def test_conditions_mean_the_same_as_in_an_index(
    stores: tuple[PostgresSets, SetIndex], on_number: list[tuple[str, Any]], on_text: list[tuple[str, Any]]
) -> None:
    sets, index = stores
    where = {"n": dict(on_number), "t": dict(on_text)}
    assert found(sets, where, candidates=len(ITEMS)) == found(index, where)


def test_bad_conditions_are_named(stores: tuple[PostgresSets, SetIndex]) -> None:
    sets, _ = stores
    bad: list[tuple[dict[str, Any], str]] = [
        ({"y": 1}, "unknown column 'y': valid are 'item', 'face', 'vector', 'n', 't'"),
        ({"n": {"~": 1}}, "unknown operator in condition on 'n'"),
        ({"n": {}}, "is empty"),
        ({"t": {"prefix": 3}}, "'prefix' takes a string"),
        ({"n": float("nan")}, "not a finite number"),
        ({"n": "many"}, "invalid input syntax for type double precision"),
        ({"t": 3}, "operator does not exist: text = "),
        ({"t": "a\0b"}, "cannot contain NUL"),
        ({"n = 1 OR true --": 1}, "unknown column"),
    ]
    for where, message in bad:
        with pytest.raises(InvalidInputError, match=message):
            found(sets, where)
