from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.connect import PostgresSets
from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, NotAnIndexError, StorageError
from tests.support.postgres_server import PostgresServer
from tests.support.sets_world import fill_table, sets_world

pytestmark = pytest.mark.xdist_group("postgres")

WORLD = sets_world()
QUERY = WORLD.people[WORLD.together]


@pytest.fixture
def filled(uri: str) -> str:
    fill_table(uri, WORLD)
    return uri


def run(uri: str, *statements: str) -> None:
    with psycopg.connect(uri) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_it_answers_like_an_index(filled: str, tmp_path: Path) -> None:
    conditions: list[dict[str, Any]] = [
        {},
        {"at_least": 1},
        {"only": True},
        {"without": WORLD.people[:1]},
        {"where": {"year": {">=": 2010, "<": 2015}}},
        {"where": {"place": ["p0", "p1", "p2"]}, "at_least": 2},
    ]
    sets = PostgresSets(filled)
    with SetIndex.create(tmp_path / "index", dim=128) as index:
        index.add(*WORLD.part(0, 60))
        for options in conditions:
            wanted = index.search(QUERY, k=10, **options)
            assert wanted
            found = sets.search(QUERY, k=10, candidates=200, **options)
            assert [hit.id for hit in found] == [hit.id for hit in wanted], options
            assert [h.score for h in found] == pytest.approx([h.score for h in wanted], abs=1e-6)
            assert [hit.matches[0].element for hit in found] == [h.matches[0].element for h in wanted]


@pytest.mark.parametrize("distance", ["cosine", "ip", "l2"])
def test_candidates_come_from_an_hnsw_index(filled: str, distance: str) -> None:
    exact = PostgresSets(filled).search(QUERY, k=5, candidates=200, at_least=2)
    assert exact
    database = psycopg.conninfo.conninfo_to_dict(filled)["dbname"]
    run(
        filled,
        f"CREATE INDEX ON faces USING hnsw (vector vector_{distance}_ops)",
        f'ALTER DATABASE "{database}" SET enable_seqscan = off',  # few rows: it would rather read them all
        f'ALTER DATABASE "{database}" SET enable_sort = off',
    )
    sets = PostgresSets(filled, distance=distance)
    assert sets.search(QUERY, k=5, candidates=20, at_least=2) == exact
    with sets._database.reading() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    with psycopg.connect(filled) as plain:
        used = plain.execute(
            "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname LIKE 'faces_vector%'"
        ).fetchone()
    assert used is not None
    assert used[0] > 0
    where = {"year": 2000 + int(exact[0].id[-4:]) % 20}  # true of one item in twenty: the index is read on
    assert sets.search(QUERY, k=1, candidates=20, where=where)[0] == exact[0]


def test_any_table_or_view_with_one_row_per_face_will_do(filled: str) -> None:
    wanted = PostgresSets(filled).search(QUERY, k=60, candidates=200)
    run(
        filled,
        'CREATE SCHEMA "my photos"',
        'CREATE TABLE "my photos".photo AS SELECT row_number() OVER (ORDER BY item) AS id, item, '
        "min(year) AS taken FROM faces GROUP BY item",
        'CREATE TABLE "my photos".face AS SELECT face, id AS photo, '
        '(array_fill(3, ARRAY[128])::vector * vector)::halfvec(128) AS "the ""vector" '
        'FROM faces JOIN "my photos".photo USING (item)',
        'CREATE VIEW "my photos".seen AS SELECT face, photo, "the ""vector", taken '
        'FROM "my photos".face JOIN "my photos".photo ON photo = id',
    )
    with PostgresSets(filled, "my photos.seen", item="photo", vector='the "vector') as sets:
        found = sets.search(QUERY, k=60, candidates=200)
        assert [f"photo-{int(hit.id) - 1:04d}" for hit in found[:5]] == [hit.id for hit in wanted[:5]]
        # vectors are taken at unit length; half precision rounds them
        assert [h.score for h in found] == pytest.approx([h.score for h in wanted], abs=5e-3)
        assert len(sets.search(QUERY, k=60, where={"taken": 2003})) == 3


def test_several_examples_of_a_person_are_taken_together(filled: str) -> None:
    sets = PostgresSets(filled)
    twice = [np.stack([row, row]) for row in QUERY]
    for examples in ("aggregate", "max"):
        assert sets.search(twice, k=5, examples=examples) == sets.search(QUERY, k=5)


def test_what_is_stored_or_deleted_meanwhile_counts_at_the_next_search(filled: str) -> None:
    sets = PostgresSets(filled)
    best = sets.search(QUERY, k=1)[0].id
    run(filled, f"DELETE FROM faces WHERE item = '{best}'")
    assert sets.search(QUERY, k=1)[0].id != best
    run(filled, "DELETE FROM faces")
    assert sets.search(QUERY) == []


def test_it_never_writes(filled: str) -> None:
    sets = PostgresSets(filled)
    with pytest.raises(StorageError, match="read-only transaction"), sets._database.reading() as connection:
        connection.execute("DELETE FROM public.faces")


def test_a_lost_connection_is_opened_again(filled: str) -> None:
    sets = PostgresSets(filled)
    hits = sets.search(QUERY, k=3)
    end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'setnet'"
    run(filled, f"{end} AND datname = current_database()")
    with pytest.raises(StorageError):
        sets.search(QUERY, k=3)
    assert sets.search(QUERY, k=3) == hits


def test_what_does_not_fit_is_named(filled: str) -> None:
    def refused(message: str, **options: Any) -> None:
        with pytest.raises(InvalidInputError, match=message):
            PostgresSets(filled, **options)

    refused(
        "unknown column of faces 'photo': valid are 'item', 'face', 'vector', 'year', 'place'", item="photo"
    )
    refused(r"column 'year' of faces is integer: expected vector\(n\)", vector="year")
    refused("unknown distance 'l3': valid are 'cosine', 'ip', 'l2'", distance="l3")
    for table in ("other", "no.faces", 'x"; DROP TABLE faces; --', "%s", "x" * 99):
        with pytest.raises(NotAnIndexError, match="has no table"):
            PostgresSets(filled, table)
    sets = PostgresSets(filled)
    with pytest.raises(InvalidInputError, match="NaN"):
        sets.search(np.full((1, 128), np.nan, np.float32))
    with pytest.raises(InvalidInputError, match=r"expected \(n, 128\)"):
        sets.search(np.eye(64)[:1])


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
