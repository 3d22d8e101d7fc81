"""How many faces and celebrities each item of the simulated Celebrity Together has (tables 1 to 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError

Ints = NDArray[np.int64]

# The paper's tables; the last key of each means "this many or more".
FACES_PER_IMAGE: Mapping[int, int] = {2: 113_000, 3: 43_000, 4: 19_000, 5: 9_000, 6: 10_000}
CELEBRITIES_PER_IMAGE: Mapping[int, int] = {1: 88_000, 2: 89_000, 3: 12_000, 4: 3_000, 5: 700, 6: 300}
IMAGES, FACES = 194_000, 546_000
DISTRACTOR_IMAGES, DISTRACTOR_FACES = 355_000, 1_000_000
IDENTITIES = 2622
MOST_FACES = 40


@dataclass(frozen=True, eq=False)
class Plan:
    """Per item: faces, and how many of them are celebrities'; and the number of celebrities there are."""

    faces: Ints
    celebrities: Ints
    identities: int


def make_plan(rng: np.random.Generator, scale: float = 1.0) -> Plan:
    """Return the plan of a world, ``scale`` times the paper's size, items in random order.

    The paper's table of celebrities adds up to 193k of 194k images, a matter of rounding: the remaining
    thousand hold unknown people only, so that every printed number is met exactly.
    """
    if not 0 < scale <= 1:
        raise InvalidInputError(f"scale {scale} must lie above 0 and not above 1, the paper's size")
    together = _shares(FACES_PER_IMAGE, IMAGES, scale)
    other_images = _shares(FACES_PER_IMAGE, DISTRACTOR_IMAGES, scale)
    faces = _face_counts(together, round(FACES * scale), rng)
    celebrities = _celebrity_counts(faces, scale, rng)
    others = _face_counts(other_images, round(DISTRACTOR_FACES * scale), rng)
    order = rng.permutation(len(faces) + len(others))
    return Plan(
        np.concatenate([faces, others])[order],
        np.concatenate([celebrities, np.zeros_like(others)])[order],
        max(20, round(IDENTITIES * scale)),
    )


def _shares(table: Mapping[int, int], total: int, scale: float) -> dict[int, int]:
    """Return the table scaled to ``total * scale`` in all, largest remainders rounded up."""
    whole = round(total * scale)
    exact = np.array(list(table.values())) * (whole / sum(table.values()))
    counts = np.floor(exact).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: whole - counts.sum()]] += 1
    return dict(zip(table, counts.tolist(), strict=True))


def _face_counts(table: Mapping[int, int], total: int, rng: np.random.Generator) -> Ints:
    """Return faces per item; the items of "more than 5" share what is missing to ``total``."""
    last = max(table)
    known = np.concatenate([np.full(table[size], size) for size in table if size < last])
    more = table[last]
    rest = total - int(known.sum()) - last * more
    if more == 0 or rest < 0:
        return np.concatenate([known, np.full(more, last)])
    # one more face with a fixed chance, again and again, brought to the exact total
    extra = np.minimum(rng.geometric(more / (more + rest), more) - 1, MOST_FACES - last)
    while (off := int(extra.sum()) - rest) != 0:
        open_ = np.flatnonzero(extra > 0) if off > 0 else np.flatnonzero(extra < MOST_FACES - last)
        chosen = rng.choice(open_, min(abs(off), len(open_)), replace=False)
        extra[chosen] -= int(np.sign(off))
    return np.concatenate([known, last + extra])


def _celebrity_counts(faces: Ints, scale: float, rng: np.random.Generator) -> Ints:
    """Return celebrities per item: the many first, each to an item with enough faces."""
    counts = np.zeros(len(faces), dtype=np.int64)
    free = rng.permutation(len(faces))
    for number in sorted(CELEBRITIES_PER_IMAGE, reverse=True):
        wanted = round(CELEBRITIES_PER_IMAGE[number] * scale)
        chosen = free[faces[free] >= number][:wanted]
        counts[chosen] = number
        free = free[counts[free] == 0]
    last = max(CELEBRITIES_PER_IMAGE)
    many = np.flatnonzero(counts == last)
    counts[many] = np.minimum(last - 1 + rng.geometric(0.6, len(many)), np.minimum(faces[many], 12))
    return counts
