"""Bad input: an error that names the value and what is valid, and an index that did not change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet import SetIndex, SetNetError

ONE = np.eye(4, dtype=np.float32)[:1]
TWO = np.eye(4, dtype=np.float32)[:2]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SetIndex]:
    with SetIndex.create(tmp_path / "i", 4) as index:
        index.add(["a", "b"], TWO, [1, 1], attributes=[{"year": 1}, {"year": 2}])
        yield index
        assert sorted(item.id for item in index) == ["a", "b"]
        assert index.check().ok


def bad(value: float) -> NDArray[np.float32]:
    row = ONE.copy()
    row[0, 1] = value
    return row


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["x"], np.ones((1, 5)), [1]), r"\(1, 5\).*\(n, 4\)"),
        ((["x"], np.ones(4), [1]), r"shape \(4,\)"),
        ((["x"], bad(np.nan), [1]), "element 0.*NaN"),
        ((["x", "y"], np.concatenate([ONE, bad(np.inf)]), [1, 1]), "element 1.*infinity"),
        ((["x"], np.zeros((1, 4)), [1]), "element 0.*zero vector"),
        ((["x"], np.full((1, 4), 1e30), [1]), "longer than 1e"),
        ((["x"], np.full((1, 4), 1e300), [1]), "infinity"),
        ((["x"], np.array([["p", "q", "r", "s"]]), [1]), "real numbers"),
        ((["x"], np.ones((1, 4), complex), [1]), "real numbers"),
        ((["x"], TWO, [1]), "add up to 1, but 2"),
        ((["x"], ONE, [2]), "add up to 2, but 1"),
        ((["x"], ONE, [1, 1]), "one count per id"),
        ((["x"], ONE, [-1]), "-1 of id 'x' is negative"),
        ((["x"], ONE, [1.0]), "whole numbers"),
        ((["x", "x"], TWO, [1, 1]), "'x' is given twice"),
        ((["é" * 257], ONE, [1]), "514 bytes"),
        (([""], ONE, [1]), "0 bytes"),
        ((["a\0b"], ONE, [1]), "NUL"),
        ((["\udc80"], ONE, [1]), "Unicode"),
        (([7], ONE, [1]), "id 7 is a int"),
        (("x", ONE, [1]), "single string"),
        ((["x"], ONE, [1], [{"year": [1]}]), "'year'.*string, a number"),
        ((["x"], ONE, [1], [{"year": float("nan")}]), "finite"),
        ((["x"], ONE, [1], [{"year": 2**70}]), "64 bits"),
        ((["x"], ONE, [1], [{"": 1}]), "attribute name"),
        ((["x"], ONE, [1], [{"\ud800": 1}]), "attribute name"),
        ((["x"], ONE, [1], [{"year": "\ud800"}]), "not valid Unicode"),
        ((["x"], ONE, [1], [{}, {}]), "2 attribute mappings"),
        ((["x"], ONE, [1], None, np.ones((1, 4))), "makes its set vectors itself"),
    ],
)
def test_add(index: SetIndex, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(SetNetError, match=message):
        index.add(*arguments)


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        (np.ones((1, 5)), {}, r"query: element 0.*\(1, 5\)"),
        ([np.ones((2, 4)), np.ones((1, 3))], {}, "element 1"),
        ([], {}, "empty"),
        (np.empty((0, 4)), {}, "empty"),
        ([np.ones((1, 4)), np.empty((0, 4))], {}, "element 1"),
        (bad(np.nan), {}, "element 0.*NaN"),
        (np.zeros((1, 4)), {}, "zero vector"),
        ("anna", {}, "must be numbers"),
        ([np.stack([ONE[0], -ONE[0]])], {}, "cancel out"),
        (ONE, {"k": -1}, "k is -1: valid are 0"),
        (ONE, {"k": 1.5}, "k must be a whole number"),
        (ONE, {"k": True}, "k must be a whole number"),
        (ONE, {"mode": "exat"}, "'exat': valid are 'exact', 'fast', 'set'"),
        (ONE, {"first": "bits"}, "'bits': valid are 'lists', 'sets'"),
        (ONE, {"matching": "best"}, "'greedy', 'optimal'"),
        (ONE, {"examples": "median"}, "'aggregate', 'mean', 'max'"),
        (ONE, {"candidates": 0}, "candidates is 0"),
        (ONE, {"at_least": -2}, "at_least is -2"),
        (ONE, {"threads": 0}, "threads is 0"),
        (ONE, {"without": np.ones((1, 3))}, "without"),
        (ONE, {"where": {"yaer": 1}}, "attribute 'yaer': valid are 'year'"),
        (ONE, {"where": {"year": {"~": 1}}}, "'~'"),
        (ONE, {"where": {"year": {}}}, "empty"),
        (ONE, {"where": ["year"]}, "must map attribute names"),
        (ONE, {"where": "year"}, "must map attribute names"),
        (ONE, {"where": {"year": "\ud800"}}, "not valid Unicode"),
        (ONE, {"where": {"year": {"prefix": "\ud800"}}}, "not valid Unicode"),
        (ONE, {"where": {"year": ["\ud800"]}}, "not valid Unicode"),
        (ONE, {"where": {"year": {"prefix": 3}}}, "takes a string"),
        (ONE, {"where": {"year": {"in": "abc"}}}, "list of values"),
        (ONE, {"where": {"year": None}}, "string, a number"),
    ],
)
def test_search(index: SetIndex, query: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SetNetError, match=message):
        index.search(query, **options)


def test_ids_that_cannot_be_stored_are_not_there(index: SetIndex) -> None:
    assert "\ud800" not in index
    for action in (lambda: index.elements("\ud800"), lambda: index.rerank(ONE, ["a", "\ud800"])):
        with pytest.raises(SetNetError, match="is not in the index"):
            action()


def test_delete_of_an_unknown_id_deletes_nothing(index: SetIndex) -> None:
    with pytest.raises(SetNetError, match="'z' is not in the index: nothing was deleted"):
        index.delete(["a", "z"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "dim is 0"),
        ({"dim": 5000}, "dim is 5000: valid are 1 to 4096"),
        ({"dim": "4"}, "whole number"),
        ({"dim": 4, "precision": "float64"}, "'float32', 'float16'"),
        ({"dim": 4, "logistic": (0.0, 1.0)}, "w must be positive"),
        ({"dim": 4, "logistic": 3}, "pair"),
        ({"dim": 4, "set_bits": 2}, "2: valid are 32, 16, 8, 4, 1"),
        ({"dim": 4, "set_dim": 4097}, "4097"),
    ],
)
def test_create(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SetNetError, match=message):
        SetIndex.create(tmp_path / "n", **options)
    assert not (tmp_path / "n").exists()


def test_create_where_something_is(tmp_path: Path, index: SetIndex) -> None:
    with pytest.raises(SetNetError, match="exists already"):
        SetIndex.create(index.path, 4)
    (tmp_path / "file").write_text("x")
    with pytest.raises(SetNetError, match="exists already"):
        SetIndex.create(tmp_path / "file", 4)
    with pytest.raises(SetNetError, match="cannot create"):
        SetIndex.create(tmp_path / "file" / "below", 4)


def test_a_vector_that_vanishes_in_float16_is_refused(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "h", 4, precision="float16") as index:
        with pytest.raises(SetNetError, match=r"float16.*zero vector"):
            index.add(["x"], np.full((1, 4), 1e-9), [1])
        with pytest.raises(SetNetError, match="infinity"):
            index.add(["x"], np.full((1, 4), 1e6), [1])
        assert len(index) == 0


def test_a_condition_takes_a_list_of_any_length(index: SetIndex) -> None:
    where = {"year": {"in": [*range(2, 300_000), "x", 2.5], "<": 100}}
    assert [hit.id for hit in index.search(ONE, where=where)] == ["b"]
    assert index.search(ONE, where={"year": []}) == []
    assert index.search(ONE, where={"year": [5, 6]}) == []
