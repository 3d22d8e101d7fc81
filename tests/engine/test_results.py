"""Results and options: one JSON form each, and one object for the options of a search."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import Hit, Match, SearchOptions
from setnet.errors import InvalidInputError

ROWS = np.eye(4, dtype=np.float32)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SetIndex]:
    with SetIndex.create(tmp_path / "i", 4) as made:
        made.add(["a", "b"], ROWS[:3], [2, 1], attributes=[{"year": 1}, {"year": 2}])
        yield made


def test_every_result_survives_json(index: SetIndex) -> None:
    stats, report, item = index.stats(), index.check(), next(iter(index))
    for result in (index.search(ROWS[:2])[0].to_dict(), stats.to_dict(), asdict(report), asdict(item)):
        assert json.loads(json.dumps(result)) == result
    assert stats.to_dict()["bytes"] == stats.bytes
    assert asdict(report) == {"ok": True, "problems": []}
    assert asdict(item) == {"id": "a", "elements": 2, "attributes": {"year": 1}}
    hit = Hit("a", 1.23456789, (Match(1, 2, 0.5),))
    assert (hit.to_dict()["score"], hit.to_dict()["matches"][0]["query_element"]) == (1.234568, 1)


def test_options_made_once_answer_as_keywords_do(index: SetIndex) -> None:
    options = SearchOptions(where={"year": 2}, at_least=1, without=ROWS[:1])
    queries = [ROWS[2:3], ROWS[1:3]]
    expected = index.search_many(queries, k=1, where={"year": 2}, at_least=1, without=ROWS[:1])
    assert index.search_many(queries, k=1, **options) == expected
    assert [hit.id for hit in expected[0]] == ["b"]


def test_misspelt_options_are_type_errors_and_refused(index: SetIndex) -> None:
    with pytest.raises(TypeError, match="onyl"):
        index.search(ROWS[:1], onyl=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="candidate"):
        index.search(ROWS[:1], **SearchOptions(candidate=3))  # type: ignore[typeddict-unknown-key]
    with pytest.raises(InvalidInputError, match="exat"):
        index.search(ROWS[:1], mode="exat")  # type: ignore[arg-type]
