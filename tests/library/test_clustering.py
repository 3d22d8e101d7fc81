"""Faces of virtual people are grouped alike whatever their number, shares and order."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet.evaluate.people import LFW_LIKE
from setnet.library import clustering, group_descriptors
from setnet.library.clustering import FacesToLink, GroupingScores, group_faces
from setnet.train.simulated import VirtualPeople
from studies.grouping import GroupQuality, group_quality, pairwise_agreement, photos_at_random

Floats = NDArray[np.float32]
Owners = NDArray[np.int64]
EXPECTED = GroupingScores.expected(0.4)


def album(*counts: int, seed: int = 0, difficulty: float = 1.0) -> tuple[Floats, Owners]:
    """Return faces of people who have so many each, mixed, and whose they are."""
    rng = np.random.default_rng(seed)
    model = VirtualPeople.load(LFW_LIKE).harder(difficulty)
    who = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return model.faces(rng, model.people(rng, len(counts)), who), who


def quality(faces: Floats, who: Owners) -> GroupQuality:
    return group_quality(group_descriptors(faces), who)


@pytest.mark.parametrize(
    "counts", [(1,) * 1500, (8,) * 150, (40,) * 20, (1,) * 300 + (5,) * 60, (60, 50, 40)]
)
def test_people_are_found_whatever_the_shape_of_the_library(counts: tuple[int, ...]) -> None:
    found = quality(*album(*counts))
    assert found.precision >= 0.985
    assert found.f1 >= 0.97


@pytest.mark.parametrize("others", [0, 5, 20, 60])
def test_somebody_with_most_of_the_faces_is_one_group(others: int) -> None:
    found = quality(*album(120, *[1] * others))
    assert found.recall > 0.95
    assert found.precision > 0.98


def test_poor_faces_are_left_alone_rather_than_mixed() -> None:
    found = quality(*album(*[8] * 200, difficulty=1.25))
    assert found.precision >= 0.99
    assert found.f1 >= 0.95


def test_the_order_of_faces_does_not_matter() -> None:
    faces, _ = album(*[1] * 100, *[6] * 80, difficulty=1.2)
    order = np.random.default_rng(1).permutation(len(faces))
    assert pairwise_agreement(group_descriptors(faces)[order], group_descriptors(faces[order])) > 0.999


def test_more_faces_alone_ask_for_more_similarity() -> None:
    faces, who = album(*[1] * 400, *[5] * 100)
    several = np.bincount(who)[who] > 1
    mixed = GroupingScores.between(faces, who, EXPECTED)
    together = GroupingScores.between(
        faces[several], np.unique(who[several], return_inverse=True)[1], EXPECTED
    )
    alone = GroupingScores.between(faces[~several], np.arange(400), EXPECTED)
    assert alone.company == 0.0
    assert 0.4 < mixed.company < 0.6 < together.company


def test_parts_and_cells_find_what_one_comparison_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    faces, who = album(*[1] * 300, *[4] * 150, *[30] * 10, 500)
    whole = group_descriptors(faces)
    monkeypatch.setattr(clustering, "WHOLE", 500)
    monkeypatch.setattr(clustering, "PART", 150)
    monkeypatch.setattr(clustering, "EXACT", 300)
    in_parts = group_descriptors(faces)
    assert pairwise_agreement(whole, in_parts) > 0.97
    assert abs(group_quality(in_parts, who).f1 - group_quality(whole, who).f1) < 0.01


def test_later_rounds_may_leave_out_what_did_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    faces, _ = album(*[1] * 200, *[20] * 40, difficulty=1.3)
    monkeypatch.setattr(clustering, "FEW", 0.0)
    every = group_descriptors(faces)
    monkeypatch.setattr(clustering, "FEW", 1.1)
    assert pairwise_agreement(every, group_descriptors(faces)) > 0.999


@pytest.mark.parametrize(("alike", "together"), [(0.55, 6), (0.65, 12)])
def test_twins_in_one_photo_again_and_again_are_two_people(alike: float, together: int) -> None:
    model = VirtualPeople.load(LFW_LIKE)
    rng = np.random.default_rng(3)
    crowd = model.people(rng, 40)
    crowd.centres[1] = alike * crowd.centres[0] + (1 - alike) * crowd.centres[1]
    who = np.concatenate([np.zeros(12, int), np.ones(12, int), np.repeat(np.arange(2, 40), 4)])
    faces = model.faces(rng, crowd, who)
    photos = np.arange(len(who))
    photos[12 : 12 + together] = photos[:together]
    found = group_quality(group_descriptors(faces, photos=photos)[:24], who[:24])
    assert len(np.unique(group_descriptors(faces)[:24])) == 1
    assert found.precision > 0.79
    assert found.recall >= 0.75


def family(alike: float, seed: int, people: int = 10, each: int = 16) -> tuple[Floats, Owners, Owners]:
    """Return faces of people who look alike, whose they are, and photos of one to six of them."""
    rng = np.random.default_rng(seed)
    model = VirtualPeople.load(LFW_LIKE)
    crowd = model.people(rng, people)
    crowd.centres[:] = alike * crowd.centres[0] + (1 - alike) * crowd.centres
    who = np.repeat(np.arange(people), each)
    return model.faces(rng, crowd, who), who, photos_at_random(who.astype(np.str_), rng)


def test_photos_of_several_tell_a_family_apart() -> None:
    faces, who, photos = family(0.4, seed=0)
    found = group_quality(group_descriptors(faces, photos=photos), who)
    assert found.precision >= 0.98
    assert found.recall >= 0.85
    assert group_quality(group_descriptors(faces), who).precision < 0.95, "photos were not needed"


def test_mirrors_hardly_divide_people() -> None:
    faces, who = album(*[1] * 200, *[6] * 100, *[40] * 10)
    rng = np.random.default_rng(0)
    photos = photos_at_random(who.astype(np.str_), rng)
    for face in rng.choice(np.flatnonzero(np.bincount(who)[who] > 1), len(who) * 3 // 100, replace=False):
        photos[face] = photos[rng.choice(np.flatnonzero(who == who[face]))]
    found = group_quality(group_descriptors(faces, photos=photos), who)
    assert found.recall >= quality(faces, who).recall - 0.005


@pytest.mark.parametrize("count", [0, 1, 2])
def test_hardly_any_faces(count: int) -> None:
    faces, _ = album(*[1] * count) if count else (np.empty((0, 128), np.float32), None)
    assert group_descriptors(faces).tolist() == list(range(count))


def test_progress_names_the_stages() -> None:
    faces, _ = album(*[3] * 50)
    told: list[tuple[str, int, int]] = []
    group_faces(FacesToLink.unknown(faces), EXPECTED, lambda *stage: told.append(stage))
    assert told[0][0] == "comparing faces"
    assert all(done <= total for _, done, total in told)
