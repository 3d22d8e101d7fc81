"""LFW's press photos as a world."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.people import virtual_split
from studies.press import press_world


def test_press_photos_become_items(tmp_path: Path) -> None:
    people = virtual_split(1.0, seed=2, people=6).test
    known = np.flatnonzero(people.labels != "")
    paths = [
        f"x/{people.labels[row]}/{row}.jpg" if row in known else f"x/y/{row}.jpg"
        for row in range(len(people.labels))
    ]
    photo = {name: [{"name": str(people.labels[r]), "image": "/".join(paths[r].split("/")[1:])} for r in rows]
             for name, rows in (("a", (0, 8)), ("b", (9, 16, 24)))}  # fmt: skip
    lists = tmp_path / "lists.json"
    lists.write_text(json.dumps(photo))
    world = press_world(people, paths, lists, frozenset(people.labels[known].tolist()))
    assert world.counts.tolist() == [2, 3]
    found = world.queries(2, 1)
    assert [max(world.truth.relevance(query).values()) for query in found] == [len(query) for query in found]
    with pytest.raises(InvalidInputError, match="LFW's paths"):
        press_world(people, ["q.jpg"] * len(paths), lists, frozenset())
