"""Pre-tagging: items are found by the names that were recognised in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from setnet.evaluate.baselines import PreTags
from setnet.heads import Logistic

ANNA, BEN, CLEO, STRANGER = np.eye(4, 16, dtype=np.float32)
ITEMS = {
    "ab": [ANNA, BEN],
    "a": [ANNA],
    "none": [],
    "s": [STRANGER],
    "sba": [STRANGER, BEN, ANNA],
    "c": [CLEO],
}
LOGISTIC = Logistic(10.0, -5.0)


def tagged(gallery: dict[str, Any]) -> PreTags:
    """Return the items' tags; added in two batches."""
    tags = PreTags(gallery, LOGISTIC)
    for ids in (["ab", "a", "none"], ["s", "sba", "c"]):
        rows = [row for name in ids for row in ITEMS[name]]
        tags.add(ids, np.stack(rows), np.array([len(ITEMS[name]) for name in ids]))
    return tags


def test_items_rank_by_the_number_of_names_they_hold() -> None:
    tags = tagged({"anna": ANNA[None], "ben": np.stack([BEN, BEN]), "cleo": CLEO[None]})
    assert tags.entries == 3 + 2 + 1
    hits = tags.search(["anna", "ben"], k=10)
    assert [(hit.id, hit.score) for hit in hits] == [("ab", 2), ("sba", 2), ("a", 1)]
    assert [(m.query_element, m.element) for m in hits[1].matches] == [(0, 2), (1, 1)]
    assert [hit.id for hit in tags.search(["anna", "ben"], k=1)] == ["ab"]


def test_of_equally_many_names_the_more_similar_come_first() -> None:
    tags = PreTags({"anna": ANNA[None]}, LOGISTIC)
    tags.add(["far", "near"], np.stack([0.8 * ANNA, 0.9 * ANNA]), np.array([1, 1]))
    assert [hit.id for hit in tags.search(["anna"], k=2)] == ["near", "far"]


def test_an_element_is_tagged_with_one_name_only() -> None:
    tags = tagged({"x": ANNA[None], "y": (ANNA + 0.1 * BEN)[None] / np.sqrt(1.01)})
    assert [hit.id for hit in tags.search(["x"], k=10)] == ["ab", "a", "sba"]
    assert tags.search(["y"], k=10) == []
