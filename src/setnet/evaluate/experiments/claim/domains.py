"""What the paper's claim is tested on: faces of LFW, or Chinese characters in many typefaces.

Each domain says who is pre-trained on, who sets are trained and whitened on, who scores are calibrated on and
who is tested: nobody is in two of the last three, and those tested were in nothing before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.data.splits import half_of
from setnet.evaluate.worlds.stress_world import StressWorld, stress_world
from setnet.train import (
    FaceArray,
    FaceSource,
    Glyphs,
    GlyphSource,
    TrainingSettings,
    aligned_crops,
    new_backbone,
    rendered_glyphs,
)

TRAINED, VALIDATED = 3000, 500  # characters; the others are tested
HELD_OUT = 100  # people of LFW's training half that scores are calibrated on
HELD_OUT_TYPEFACES = 0.15  # share of the families
REPEATS = 2  # query pictures of a person; errors are over people, so that few will do
MEASURED = 12  # pictures of a character that calibration and tests use, at most


@dataclass(frozen=True, eq=False)
class Domain:
    """The pictures of a domain, divided.

    Attributes
    ----------
    elements
        What the elements are called: faces, characters.
    pretrain, sets, calibrate
        The sources of pre-training, of set training with whitening, and of calibration.
    tests
        The sources of the tests by name; the main one is "".
    sizes
        (labelled identities, sets) of a test world, the largest first.
    calibration
        The same of the calibration world.
    worlds
        How many test worlds there should be: the more, the smaller they are.
    facts
        What the page says about the data.
    """

    elements: str
    pretrain: FaceSource
    sets: FaceSource
    calibrate: FaceSource
    tests: Mapping[str, FaceSource]
    sizes: Sequence[tuple[int, int]]
    calibration: tuple[int, int]
    worlds: int
    facts: Mapping[str, object]


def faces_domain(photos: Path, crops: Path, settings: TrainingSettings) -> Domain:
    """Return LFW: one half of the training people pre-trains, the other trains sets; others are tested."""
    cut = aligned_crops(photos, settings.augment.short_side, crops)
    spec = new_backbone(settings).spec
    assert spec is not None
    _, owner, number = np.unique(cut.labels, return_inverse=True, return_counts=True)
    train, single = half_of(cut.labels, "train"), number[owner] == 1
    rng = np.random.default_rng(0)
    ours = np.unique(owner[train])
    held = rng.choice(
        ours[number[ours] >= 3], min(HELD_OUT, int((number[ours] >= 3).sum()) // 4), replace=False
    )
    learned = rng.permutation(np.setdiff1d(ours[number[ours] >= 2], held))
    first, second = np.isin(owner, learned[::2]), np.isin(owner, learned[1::2])
    groups = (first, second, train & (single | np.isin(owner, held)), half_of(cut.labels, "test"))
    made = [
        FaceArray(cut.pixels[rows], owner[rows].astype(np.int64), spec, settings.augment, "crops")
        for rows in groups
    ]
    facts = {"identities": [source.people for source in made], "pictures": [int(g.sum()) for g in groups]}
    sizes = ((200, 2_000), (100, 1_000), (60, 500), (40, 300), (25, 150))
    return Domain("faces", made[0], made[1], made[2], {"": made[3]}, sizes, (100, 500), 12, facts)


def glyphs_domain(folder: Path, settings: TrainingSettings) -> Domain:
    """Return characters: 3,000 train, 500 calibrate, the rest are tested; some typefaces are held out."""
    drawn = rendered_glyphs(folder, settings.augment.short_side)
    spec = new_backbone(settings).spec
    assert spec is not None
    order = np.random.default_rng(0).permutation(int(drawn.characters.max()) + 1)
    part = np.empty(len(order), np.int64)  # of each character: 0 train, 1 calibrate, 2 test
    part[order] = np.repeat([0, 1, 2], [TRAINED, VALIDATED, len(order) - TRAINED - VALIDATED])
    other = _held_out(drawn)[drawn.typefaces]
    of = part[drawn.characters]

    def source(chosen: NDArray[np.bool_]) -> GlyphSource:
        return GlyphSource(drawn, np.flatnonzero(chosen), spec, settings.augment)

    train = source((of == 0) & ~other)
    calibrate, test = (source(_some((of == p) & ~other, drawn.characters)) for p in (1, 2))
    tests = {"": test, "held-out typefaces": source(_some((of == 2) & other, drawn.characters))}
    labelled = len(np.unique(test.labels)) * 7 // 10
    facts = {
        "identities": [train.people, calibrate.people, test.people],
        "pictures": [len(one.labels) for one in (train, calibrate, test)],
        "typefaces": len(drawn.names),
        "held_out": [drawn.names[i] for i in np.flatnonzero(_held_out(drawn))],
        "sha256": drawn.checksum,
    }
    return Domain("characters", train, train, calibrate, tests, ((labelled, 24_000),), (400, 6_000), 3, facts)


def _some(chosen: NDArray[np.bool_], characters: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return `chosen` with no more than `MEASURED` random pictures of a character."""
    rows = np.random.default_rng(2).permutation(np.flatnonzero(chosen))
    rows = rows[np.argsort(characters[rows], kind="stable")]
    first = np.flatnonzero(np.diff(characters[rows], prepend=-1))
    number = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
    kept = np.zeros_like(chosen)
    kept[rows[number < MEASURED]] = True
    return kept


def _held_out(drawn: Glyphs) -> NDArray[np.bool_]:
    """Return which typefaces no network is trained on: whole families, so that no sister tells of them."""
    families = sorted(set(drawn.families))
    chosen = np.random.default_rng(1).permutation(families)[
        : max(1, round(HELD_OUT_TYPEFACES * len(families)))
    ]
    return np.isin(drawn.families, chosen)


def test_world(source: FaceSource, labelled: int, sets: int, number: int) -> StressWorld:
    """Return the world of one draw of labelled identities; its descriptors are still to come.

    People of one picture are the distractors where there are any, else all who are not labelled.
    """
    owner = source.labels
    people, pictures = np.unique(owner, return_counts=True)
    several = people[pictures >= 3]
    shuffled = np.random.default_rng(1).permutation(several)[number * labelled : (number + 1) * labelled]
    if len(shuffled) < labelled:  # too few for worlds that share nobody
        shuffled = np.random.default_rng((1, number)).permutation(several)[:labelled]
    known = np.isin(owner, shuffled)
    alone = np.isin(owner, people[pictures == 1])
    keep = np.flatnonzero(known | (alone if alone.any() else True))
    labels = np.where(known, owner.astype(np.str_), "")[keep]
    nothing = np.zeros((len(keep), 1), np.float32)
    world = stress_world(nothing, labels, sets=sets, queries=100, repeats=REPEATS, seed=number)
    return replace(world, faces=keep[world.faces], examples=keep[world.examples])
