"""What makes an index natural to use: forms of `add`, items by id, updates, conditions, copies for others."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.errors import InvalidInputError

ROWS = np.eye(4, dtype=np.float32)


def test_all_forms_of_add_store_the_same(tmp_path: Path) -> None:
    ids, items = ["a", "b", "c"], [ROWS[:2], np.empty((0, 4)), ROWS[2:3]]
    forms: list[dict[str, Any]] = [
        {"ids": ids, "elements": ROWS[:3], "counts": [2, 0, 1]},
        {"ids": ids, "elements": items},
        {"ids": dict(zip(ids, items, strict=True))},
        {"ids": ids, "elements": [ROWS[:2].tolist(), [], ROWS[2]]},
    ]
    for attributes in ([{"n": 1}, None, {"n": 3}], {"c": {"n": 3}, "a": {"n": 1}}):
        for form in forms:
            with SetIndex.in_memory(4) as index:
                index.add(**form, attributes=attributes)
                contents = index.contents()
                assert (contents.ids, contents.counts.tolist()) == (ids, [2, 0, 1])
                np.testing.assert_array_equal(contents.elements, ROWS[:3])
                assert [item.attributes for item in index] == [{"n": 1}, {}, {"n": 3}]
    with SetIndex.in_memory(4) as index:
        index.add(["a", "b"], ROWS.reshape(2, 2, 4))
        np.testing.assert_array_equal(index.elements("b"), ROWS[2:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"],), "an array for each of 1 ids"),
        ((["a"], [ROWS, ROWS]), "an array for each of 1 ids"),
        ((["a"], 3), "an array for each of 1 ids"),
        ((["a"], [np.ones((1, 5))]), r"id 'a' have shape \(1, 5\): \(n, 4\)"),
        (({"a": ROWS}, ROWS), "leave elements and counts out"),
        (({"a": ROWS}, None, None, {"b": {}}), "attributes given for 'b'"),
        (({3: ROWS},), "ids are strings"),
    ],
)
def test_bad_forms_of_add_are_named(arguments: tuple[Any, ...], message: str) -> None:
    with SetIndex.in_memory(4) as index:
        with pytest.raises(InvalidInputError, match=message):
            index.add(*arguments)
        assert len(index) == 0


def test_an_update_changes_attributes_and_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4)).astype(np.float16)
    ids = [f"i{n}" for n in range(300)]
    for bits in (32, 8, 1):
        with SetIndex.create(tmp_path / str(bits), 4, precision="float16", set_bits=bits) as index:
            index.add(ids, rows, [1] * 300, attributes=[{"n": n, "kind": "x"} for n in range(300)])
            index.add(["late"], rows[:1], [1])
            before, found = index.contents(), index.search(rows[:1], k=301, mode="set")
            index.update({"i7": {"n": 1000, "kind": None}, "late": {"n": 5}})
            assert (index["i7"].attributes, index["late"].attributes) == ({"n": 1000}, {"n": 5})
            assert index["i8"].attributes == {"n": 8, "kind": "x"}
            assert index.search(rows[:1], k=301, mode="set") == found
            assert index.search(rows[:1], where={"n": {">": 299}}).ids == ["i7"]
            np.testing.assert_array_equal(index.elements("i7"), rows[7:8])
            assert len(index.contents().ids) == len(before.ids)
            with pytest.raises(InvalidInputError, match="'nobody' is not in the index: nothing was changed"):
                index.update({"i9": {"n": 0}, "nobody": {}})
            with pytest.raises(InvalidInputError, match="a string, a number or None"):
                index.update({"i9": {"n": [1]}})
            assert index["i9"].attributes["n"] == 9
            index.compact()
            assert index.check().ok
            assert index["i7"].attributes == {"n": 1000}


def test_deleting_by_condition_deletes_exactly_what_is_found_by_it(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "i", 4) as index:
        for at in range(0, 12, 4):
            index.add(
                [f"i{n}" for n in range(at, at + 4)], ROWS, [1] * 4, [{"n": n} for n in range(at, at + 4)]
            )
        index.delete(["i5"])
        assert index.delete(where={"n": {">=": 3, "<": 7}}) == 3
        assert [item.id for item in index] == ["i0", "i1", "i2", "i7", "i8", "i9", "i10", "i11"]
        assert index.delete(where={"n": 5}) == 0
        refused: list[dict[str, Any]] = [{}, {"where": {}}, {"ids": ["i0"], "where": {"n": 0}}]
        for wrong in refused:
            with pytest.raises(InvalidInputError, match="one of the two"):
                index.delete(**wrong)
        assert len(index) == 8
        assert index.check().ok


@pytest.mark.parametrize("mode", ["exact", "fast", "set"])
def test_hits_have_their_attributes_if_asked(tmp_path: Path, mode: Any) -> None:
    with SetIndex.create(tmp_path / "i", 4) as index:
        index.add({"a": ROWS[:2], "b": ROWS[1:]}, attributes={"a": {"year": 2019}})
        index.add({"c": ROWS[1:2]}, attributes={"c": {"year": 2020}})
        hits = index.search(ROWS[1:2], mode=mode, attributes=True)
        assert {hit.id: hit.attributes for hit in hits} == {"a": {"year": 2019}, "b": {}, "c": {"year": 2020}}
        assert hits[1:].attributes == hits.attributes[1:]
        assert hits[1:].followed_by(hits).attributes == [*hits.attributes[1:], hits.attributes[0]]
        assert index.rerank(ROWS[:1], ["c"], attributes=True)[0].to_dict()["attributes"] == {"year": 2020}
        plain = index.search(ROWS[1:2], mode=mode)
        assert (plain.ids, plain[0].attributes, plain.attributes) == (hits.ids, {}, [])


def test_an_index_is_opened_or_created_with_the_same_settings(tmp_path: Path) -> None:
    path = tmp_path / "i"
    with SetIndex.open_or_create(path, 4, precision="float16", logistic=(10, -5)) as index:
        index.add({"a": ROWS})
    with SetIndex.open_or_create(path, 4, precision="float16", logistic=(10, -5)) as index:
        assert "a" in index
    for wrong in ({"dim": 5}, {"dim": 4, "precision": "float32"}, {"dim": 4, "logistic": (10, -6)}):
        with pytest.raises(InvalidInputError, match=r"was made with .*, not .*: open it with SetIndex.open"):
            SetIndex.open_or_create(path, **wrong)
    SetIndex.open(path).close()  # the lock was given back


def test_a_pickled_index_is_opened_again_for_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with SetIndex.create("i", 4) as index:
        index.add({"a": ROWS[:2]})
        stored = pickle.dumps(index)
        monkeypatch.chdir("/")
        with pickle.loads(stored) as again:
            assert (again.read_only, again.search(ROWS[:1]).ids) == (True, ["a"])
            assert repr(again) == f"SetIndex({str(tmp_path / 'i')!r}, dim=4, 1 items, read-only)"
    assert repr(index) == f"SetIndex({str(tmp_path / 'i')!r}, closed)"


def test_an_index_in_memory_leaves_nothing_behind() -> None:
    index = SetIndex.in_memory(4, head="none")
    folder = index.path.parent
    index.add({"a": ROWS})
    assert index.search(ROWS[:1]).ids == ["a"]
    index.close()
    assert not folder.exists()
    index = SetIndex.in_memory(4)
    folder = index.path.parent
    del index
    gc.collect()
    assert not folder.exists()
    with pytest.raises(InvalidInputError, match="dim"):
        SetIndex.in_memory(0)


def test_a_table_of_arrow_brings_everything_to_another_index(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    with SetIndex.create(tmp_path / "i", 4) as index, SetIndex.in_memory(4) as copy:
        assert index.to_arrow().num_rows == 0
        index.add(
            {"a": ROWS[:2], "b": [], "c": ROWS[2:]}, attributes={"a": {"n": 1}, "c": {"t": "x", "n": 2.5}}
        )
        table = index.to_arrow()
        assert table.column_names == ["id", "elements", "n", "t"]
        copy.add_arrow(table.slice(0, 1))
        copy.add_arrow(arrow.concat_tables([table.slice(2), table.slice(1, 1)]))
        assert {item.id: item for item in copy} == {item.id: item for item in index}
        np.testing.assert_array_equal(copy.elements("c"), ROWS[2:])
        bad = [table.drop_columns(["id"]), table.set_column(1, "elements", [[1, 2, 3]])]
        for wrong, message in zip(bad, ("no column 'id'", "lists of vectors of fixed size"), strict=True):
            with pytest.raises(InvalidInputError, match=message):
                copy.add_arrow(wrong)
        index.add({"d": ROWS[:1]}, attributes={"d": {"n": "text"}})
        with pytest.raises(InvalidInputError, match="'n' has values of several kinds"):
            index.to_arrow()
