from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from setnet.errors import InvalidInputError, ModelError, NotAnIndexError, VersionError
from setnet.index import SetIndex
from setnet.sources import PostgresSets
from setnet.sources.postgres.inverted_lists import good_number
from sets_world import SetsWorld, sets_world

WORLD = sets_world()
QUERY = WORLD.people[WORLD.together]


def filled(uri: str, world: SetsWorld = WORLD, **options: Any) -> PostgresSets:
    sets = PostgresSets.create(uri, **options)
    sets.add(*world.part(0, len(world.ids)))
    return sets


def test_it_answers_like_an_index(uri: str, tmp_path: Path) -> None:
    conditions: list[dict[str, Any]] = [
        {},
        {"at_least": 1},
        {"only": True},
        {"without": WORLD.people[:1]},
        {"where": {"year": {">=": 2010, "<": 2015}}},
        {"where": {"place": ["p0", "p1", "p2"]}, "at_least": 2},
    ]
    sets = filled(uri, partitions=3)
    sets.make_cells(8)
    with SetIndex.create(tmp_path / "index", dim=128) as index:
        index.add(*WORLD.part(0, 60))
        for options in conditions:
            wanted = index.search(QUERY, k=10, **options)
            assert wanted
            for mode in ("scan", "exact", "cells"):
                found = sets.search(QUERY, k=10, mode=mode, probes=8, candidates=60, **options)
                assert [hit.id for hit in found] == [hit.id for hit in wanted], (mode, options)
                assert [h.score for h in found] == pytest.approx([h.score for h in wanted], abs=1e-6)
                assert [hit.matches[0].element for hit in found] == [h.matches[0].element for h in wanted]


def test_exact_search_looks_further_than_its_first_candidates(uri: str) -> None:
    sets = filled(uri)
    everything = sets.search(QUERY, k=30, mode="exact", candidates=60)
    few = sets.search(QUERY, k=30, mode="exact", candidates=1)
    assert [hit.id for hit in few] == [hit.id for hit in everything]


def test_several_examples_of_a_person_are_taken_together(uri: str) -> None:
    sets = filled(uri)
    twice = [np.stack([row, row]) for row in QUERY]
    for mode in ("scan", "exact"):
        assert sets.search(twice, k=5, mode=mode) == sets.search(QUERY, k=5, mode=mode)


def test_adding_again_replaces_and_repeating_changes_nothing(uri: str) -> None:
    sets = filled(uri)
    before = sets.search(QUERY, k=60)
    sets.add(*WORLD.part(10, 30))
    assert sets.search(QUERY, k=60) == before
    sets.add([WORLD.ids[0]], QUERY, [2], [{"year": 1999}])
    assert len(sets) == 60
    assert sets.search(QUERY, k=1)[0].id == WORLD.ids[0]
    assert [hit.id for hit in sets.search(QUERY, k=9, where={"year": 1999})] == [WORLD.ids[0]]
    sets.add([WORLD.ids[0]], np.empty((0, 128), np.float32), [0])
    assert WORLD.ids[0] not in {hit.id for hit in sets.search(QUERY, k=60)}
    assert len(sets) == 60


def test_deleting(uri: str) -> None:
    sets = filled(uri, partitions=2)
    with pytest.raises(InvalidInputError, match="'gone' is not stored: nothing was deleted"):
        sets.delete([WORLD.ids[0], "gone"])
    assert len(sets) == 60
    assert sets.delete([WORLD.ids[0], "gone"], missing_ok=True) == 1
    assert sets.delete(WORLD.ids[:3], missing_ok=True) == 2
    with psycopg.connect(uri) as plain:  # anybody may delete in plain SQL
        plain.execute("DELETE FROM setnet.items WHERE attributes ->> 'place' = 'p1'")
        left = plain.execute("SELECT count(DISTINCT item), count(*) FROM setnet.elements").fetchone()
    assert left is not None
    assert left[0] == len(sets) == 60 - 3 - 19
    assert not sets.search(QUERY, k=60, mode="exact", where={"year": 2001, "place": "p1"})


def test_cells_hold_what_is_added_before_and_after(uri: str) -> None:
    sets = PostgresSets.create(uri)
    with pytest.raises(InvalidInputError, match="has no cells: `setnet pg cells` makes them"):
        sets.search(QUERY, mode="cells")
    with pytest.raises(InvalidInputError, match="0 elements cannot fill 4 cells"):
        sets.make_cells(4)
    sets.add(*WORLD.part(0, 30))
    other = PostgresSets(uri)
    other.make_cells(16)
    sets.add(*WORLD.part(30, 60))  # learns of the cells that somebody else made
    with psycopg.connect(uri) as plain:
        odd = plain.execute("SELECT count(*) FROM setnet.items WHERE cells && '{-1}'").fetchone()
    assert odd == (0,)
    for person in range(5):
        query = WORLD.people[person : person + 1]
        assert sets.search(query, k=3, mode="cells", probes=3, at_least=1) == other.search(
            query, k=3, at_least=1
        )
    assert sets.make_cells() == good_number(int(WORLD.counts.sum())) > 1
    everywhere = sets.search(QUERY, k=9, mode="cells", probes=4096)
    assert everywhere == sets.search(QUERY, k=9)


def test_several_schemas_with_odd_names_live_side_by_side(uri: str) -> None:
    names = ['x"; DROP TABLE setnet.items; --', "two words", "Ünïcode{items}"]
    for number, name in enumerate(names):
        sets = PostgresSets.create(uri, name, head="mean", dim=8)
        sets.add([f"{number}"], np.eye(8)[:1], [1])
    for number, name in enumerate(names):
        assert [h.id for h in PostgresSets(uri, name).search(np.eye(8)[:1])] == [f"{number}"]
    for bad in ("", "x" * 64, "pg_mine", "a\0b", "%s"):
        with pytest.raises(InvalidInputError, match="a name of 1 to 63 bytes is expected"):
            PostgresSets(uri, bad)


def test_wrong_vectors_and_names_are_refused_before_anything_is_stored(uri: str) -> None:
    sets = filled(uri)
    nan = np.full((1, 128), np.nan, np.float32)
    with pytest.raises(InvalidInputError, match="NaN"):
        sets.add(["a"], nan, [1])
    with pytest.raises(InvalidInputError, match="NaN"):
        sets.search(nan)
    with pytest.raises(InvalidInputError, match=r"expects \(n, 128\)"):
        sets.add(["a"], np.eye(64)[:1], [1])
    with pytest.raises(InvalidInputError, match=r"expected \(n, 128\)"):
        sets.search(np.eye(64)[:1])
    with pytest.raises(InvalidInputError, match="item 'a': an attribute holds a NUL character"):
        sets.add(["a"], WORLD.people[:1], [1], [{"note": "x\0y"}])
    with pytest.raises(InvalidInputError, match="given twice"):
        sets.add(["a", "a"], WORLD.people[:2], [1, 1])
    with pytest.raises(InvalidInputError, match="unknown mode 'fast': valid are 'scan', 'cells', 'exact'"):
        sets.search(QUERY, mode="fast")
    assert len(sets) == 60
    sets.add(["b"], WORLD.people[:1], [1], [{"note": r"a backslash \u0000 as text"}])
    sets.add([], np.empty((0, 128)), [])


def test_tables_are_made_once_and_opened_with_the_head_that_made_them(uri: str) -> None:
    with pytest.raises(NotAnIndexError, match="no setnet tables: `setnet pg init` makes them"):
        PostgresSets(uri)
    with pytest.raises(InvalidInputError, match="unknown head 'sface-9000': valid are 'sface-128'"):
        PostgresSets.create(uri, head="sface-9000")
    with pytest.raises(InvalidInputError, match="'sface-128d' makes no set vectors of one bit per dimension"):
        PostgresSets.create(uri, head="sface-128d")
    with pytest.raises(InvalidInputError, match="takes 128-D elements"):
        PostgresSets.create(uri, head="sface-512", dim=64)
    with pytest.raises(InvalidInputError, match="say which with dim"):
        PostgresSets.create(uri, head="mean")
    filled(uri)
    with pytest.raises(NotAnIndexError, match="no setnet tables in schema 'other': `setnet pg init` makes"):
        PostgresSets(uri, "other")
    assert len(PostgresSets.create(uri)) == 60
    with pytest.raises(InvalidInputError, match="tables with other settings"):
        PostgresSets.create(uri, head="sface-128")
    with pytest.raises(ModelError, match="'sface-128' did not make the set vectors"):
        PostgresSets(uri, head="sface-128")


def test_tables_of_other_versions(uri: str) -> None:
    filled(uri)
    with psycopg.connect(uri) as plain:
        plain.execute("DROP INDEX setnet.items_cells")
        plain.execute("ALTER TABLE setnet.items DROP COLUMN cells")
        plain.execute("DROP TABLE setnet.cells")
        plain.execute("DELETE FROM setnet.meta WHERE key = 'cells'")
        plain.execute("UPDATE setnet.meta SET value = '1' WHERE key = 'version'")
    with pytest.raises(VersionError, match="version 1, this setnet uses 2: `setnet pg init`"):
        PostgresSets(uri)
    sets = PostgresSets.create(uri)
    assert len(sets.search(QUERY, k=60)) == 60
    sets.make_cells(4)
    with psycopg.connect(uri) as plain:
        plain.execute("UPDATE setnet.meta SET value = '3' WHERE key = 'version'")
    with pytest.raises(VersionError, match="version 3, this setnet knows up to 2: update setnet"):
        PostgresSets(uri)
