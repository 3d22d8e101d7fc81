"""Libraries of other shapes are drawn from the people given."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.evaluate.people import LabelledPeople
from studies.grouping import photos_at_random, shapes


@pytest.fixture(scope="module")
def people() -> LabelledPeople:
    counts = [1] * 400 + [3] * 100 + [30] * 25
    labels = np.repeat([f"p{i}" for i in range(len(counts))], counts)
    rows = np.random.default_rng(0).normal(size=(len(labels), 8)).astype(np.float32)
    return LabelledPeople(rows / np.linalg.norm(rows, axis=1, keepdims=True), labels)


def test_each_shape_has_the_people_its_name_says(people: LabelledPeople) -> None:
    found = shapes(people, 0)
    sizes = {name: [len(rows) for rows in shape.people.groups()] for name, shape in found.items()}
    assert sizes["one face of each person"] == [1] * 525
    assert min(sizes["people of two faces or more"]) == 3
    assert sizes["20 people of ten faces or more"] == [30] * 20
    assert sizes["3 people of ten faces or more"] == [30] * 3
    assert max(sizes["nine of ten faces of one person"]) == 30
    assert sum(sizes["nine of ten faces of one person"]) == 33
    assert 200 <= sum(sizes["200 faces"]) < 230
    assert not any("virtual" in name for name in found)  # these people have another dimension


def test_other_seeds_draw_other_people(people: LabelledPeople) -> None:
    one, other = (shapes(people, seed)["200 faces"].people.labels for seed in (0, 1))
    assert set(one) != set(other)
    assert one.tolist() == shapes(people, 0)["200 faces"].people.labels.tolist()


def test_nobody_is_twice_in_a_photo(people: LabelledPeople) -> None:
    photos = photos_at_random(people.labels, np.random.default_rng(0))
    pairs = list(zip(photos.tolist(), people.labels.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert 1.5 < len(photos) / len(np.unique(photos)) < 2.5
    assert np.unique(photos, return_counts=True)[1].max() == 6
