from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postgres_server import PostgresServer
from setnet.errors import InvalidInputError
from setnet.index import SetIndex
from setnet.sources import PostgresSets

VALUES: list[Any] = [
    0, 1, -1, 2, 2.0, 2.5, -0.5, 1e300, 2**53, 2**53 + 1, 2**63 - 1, "", "a", "A", "b", "ab", "aé", "é", "z",
    "2", "10", "%", "_", "'", '"', "\\", "Ω", "\U0001f4f7", "\uffff", None,
]  # fmt: skip
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "prefix")


@pytest.fixture(scope="module")
def stores(
    server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[PostgresSets, SetIndex]]:
    """The same items, one for each value, in PostgreSQL and in an index."""
    items = [f"{i}" for i in range(len(VALUES))], np.ones((len(VALUES), 8)), [1] * len(VALUES)
    attributes = [{"x": value, "all": 1} for value in VALUES]
    sets = PostgresSets.create(server.new_database("where"), head="mean", dim=8)
    sets.add(*items, attributes)
    path: Path = tmp_path_factory.mktemp("where") / "index"
    with SetIndex.create(path, dim=8) as index:
        index.add(*items, attributes)
        yield sets, index
    sets.close()


def found(store: Any, where: dict[str, Any]) -> set[str]:
    return {hit.id for hit in store.search(np.ones((1, 8)), k=len(VALUES), where=where)}


values = st.sampled_from([value for value in VALUES if value is not None])
operands = st.one_of(
    st.tuples(st.sampled_from(OPERATORS[:6]), values),
    st.tuples(st.just("in"), st.lists(values, max_size=4)),
    st.tuples(st.just("prefix"), values.filter(lambda value: isinstance(value, str))),
)


@given(st.lists(operands, min_size=1, max_size=3))
def test_conditions_mean_the_same_as_in_an_index(
    stores: tuple[PostgresSets, SetIndex], conditions: list[tuple[str, Any]]
) -> None:
    sets, index = stores
    where = {"x": dict(conditions), "all": 1}
    assert found(sets, where) == found(index, where)


def test_bad_conditions_are_named(stores: tuple[PostgresSets, SetIndex]) -> None:
    sets, _ = stores
    bad: list[tuple[dict[str, Any], str]] = [
        ({"y": 1}, "unknown attribute 'y': valid are 'all', 'x'"),
        ({"x": {"~": 1}}, "unknown operator in condition on 'x'"),
        ({"x": {}}, "is empty"),
        ({"x": {"prefix": 3}}, "'prefix' takes a string"),
        ({"x": float("nan")}, "not a finite number"),
        ({"x": "a\0b"}, "holds a NUL character"),
        ({"x') OR true --": 1}, "unknown attribute"),
    ]
    for where, message in bad:
        with pytest.raises(InvalidInputError, match=message):
            found(sets, where)
