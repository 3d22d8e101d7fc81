"""Libraries of several shapes made of the same people: who has how many faces, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.data.labelled_people import LFW_LIKE, LabelledPeople
from setnet.train import VirtualPeople

Rows = NDArray[np.int64]
Draw = Callable[[Sequence[Rows], np.random.Generator], Rows]

LARGE = 20_000  # faces
_IN_A_PHOTO = (1, 2, 3, 4, 6)  # faces, with these shares
_SHARES = (0.4, 0.3, 0.15, 0.1, 0.05)


@dataclass(frozen=True, eq=False)
class Shape:
    """Faces to group, and the photo that each is in where several share one."""

    people: LabelledPeople
    photos: NDArray[np.int64] | None = None


def shapes(people: LabelledPeople, seed: int) -> dict[str, Shape]:
    """Return libraries by what they are like, drawn from these people; others are drawn with another seed."""
    each = people.groups()
    found = {}
    for number, (name, draw) in enumerate(_DRAWN.items()):
        rows = draw(each, np.random.default_rng((seed, number)))
        if len(rows):
            found[name] = Shape(LabelledPeople(people.descriptors[rows], people.labels[rows]))
    rng = np.random.default_rng((seed, 50))
    found["several faces in each photo"] = Shape(people, photos_at_random(people.labels, rng))
    model = VirtualPeople.load(LFW_LIKE)
    if model.dim == people.dim and len(people.labels) < LARGE:
        found[f"{LARGE:,} faces, most of virtual people"] = Shape(_filled(people, model, rng))
    return found


def photos_at_random(labels: NDArray[np.str_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a photo for each face, of one to six faces, nobody twice in one."""
    order = rng.permutation(len(labels))
    sizes = rng.choice(_IN_A_PHOTO, size=len(labels), p=_SHARES)
    photo = np.repeat(np.arange(len(sizes)), sizes)[: len(labels)]
    named = list(zip(photo.tolist(), labels[order].tolist(), strict=True))
    first = {pair: place for place, pair in reversed([*enumerate(named)])}
    again = np.array([first[pair] != place for place, pair in enumerate(named)], bool)
    photo[again] = len(sizes) + np.flatnonzero(again)
    found = np.empty(len(labels), np.int64)
    found[order] = photo
    return found


def _one_each(each: Sequence[Rows], rng: np.random.Generator) -> Rows:
    return np.array([rng.choice(rows) for rows in each])


def _several(least: int, most_people: int | None = None) -> Draw:
    def draw(each: Sequence[Rows], rng: np.random.Generator) -> Rows:
        some = [rows for rows in each if len(rows) >= least]
        chosen = rng.permutation(len(some))[:most_people]
        return _joined([some[i] for i in chosen])

    return draw


def _faces(count: int) -> Draw:
    def draw(each: Sequence[Rows], rng: np.random.Generator) -> Rows:
        order = rng.permutation(len(each))
        ends = np.cumsum([len(each[i]) for i in order])
        return _joined([each[i] for i in order[: np.searchsorted(ends, count) + 1]])

    return draw


def _mostly_one(each: Sequence[Rows], rng: np.random.Generator) -> Rows:
    """Return the faces of somebody who has many, nine for each face of anybody else."""
    many = [rows for rows in each if len(rows) >= 18]
    if not many:
        return np.empty(0, np.int64)
    one = many[int(rng.integers(len(many)))]
    others = _joined([rows for rows in each if rows[0] != one[0]])
    return np.concatenate([one, rng.choice(others, len(one) // 9, replace=False)])


def _joined(parts: Sequence[Rows]) -> Rows:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _filled(people: LabelledPeople, model: VirtualPeople, rng: np.random.Generator) -> LabelledPeople:
    count = LARGE - len(people.labels)
    sizes = np.minimum(1 / (1 - rng.random(count)), 200).astype(np.int64)
    who = np.repeat(np.arange(count), sizes)[:count]
    faces = model.faces(rng, model.people(rng, int(who.max()) + 1), who)
    labels = np.concatenate([people.labels, np.array([f"virtual {i}" for i in who.tolist()])])
    return LabelledPeople(np.concatenate([people.descriptors, faces]), labels)


_DRAWN: dict[str, Draw] = {
    "one face of each person": _one_each,
    "people of two faces or more": _several(2),
    "20 people of ten faces or more": _several(10, 20),
    "3 people of ten faces or more": _several(10, 3),
    "nine of ten faces of one person": _mostly_one,
    "200 faces": _faces(200),
    "1,000 faces": _faces(1000),
}
