"""Distractor photos: of nobody in the list, with as many faces per photo as the data set has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from setnet.collect.annotation.classifier import FaceClassifier
from setnet.collect.result.paper_statistics import FACE_BINS, face_bin
from setnet.collect.run.manifest import Row
from setnet.collect.run.packed import unpacked
from setnet.collect.run.run_folder import CollectRun


@dataclass(frozen=True, slots=True)
class Candidate:
    """A distractor photo's place in its manifest and its number of faces, or why it cannot be one."""

    photo: str
    faces: int
    reason: str | None = None
    detail: str = ""


def candidates(run: CollectRun, classifier: FaceClassifier) -> Iterator[Candidate]:
    """Yield the photos of the folders of distractors; one that may show a person of the list has a reason."""
    for row in run.manifest("distractors").kept():
        ranked = classifier.ranked(descriptors_of(row), 1)
        best = max((each[0] for each in ranked), key=lambda each: each.score)
        if best.score >= run.settings.rules.unknown_below:
            detail = f"{best.name} ({best.score:.2f})"
            yield Candidate(row["photo"], len(ranked), "may be a person of the list", detail)
        else:
            yield Candidate(row["photo"], len(ranked))


def descriptors_of(row: Row) -> np.ndarray:
    """Return the descriptors of a photo's faces."""
    return np.stack([unpacked(face["descriptor"]) for face in row["faces"]])


def alike_sample(
    found: Iterable[Candidate], wanted: Mapping[int, int], most: int | None, seed: int = 0
) -> frozenset[str]:
    """Return as many photos as there can be with the distribution of faces per photo that is wanted.

    Numbers of faces of which there is no candidate are left out of the comparison.

    Parameters
    ----------
    wanted
        Photos of the data set by their number of faces (6 is "more than 5").
    most
        How many at most; None sets no limit.

    Examples
    --------
    >>> from collections import Counter
    >>> photos = [Candidate(f"{n}-{i}", n) for n in (2, 3) for i in range(10)]
    >>> chosen = alike_sample(photos, {2: 30, 3: 15}, None)
    >>> sorted(Counter(name[0] for name in chosen).items())
    [('2', 10), ('3', 5)]
    """
    by_bin: dict[int, list[str]] = {number: [] for number in FACE_BINS}
    for each in found:
        if each.reason is None and each.faces >= FACE_BINS[0]:
            by_bin[face_bin(each.faces)].append(each.photo)
    usable = {number: wanted.get(number, 0) for number in FACE_BINS if by_bin[number]}
    total = sum(usable.values())
    if not total:
        return frozenset()
    scale = min(len(by_bin[number]) / count for number, count in usable.items() if count)
    if most is not None:
        scale = min(scale, most / total)
    rng = np.random.default_rng(seed)
    chosen: list[str] = []
    for number, count in usable.items():
        chosen += _drawn(by_bin[number], int(scale * count + 1e-9), rng)
    return frozenset(chosen)


def _drawn(photos: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    return [photos[i] for i in rng.permutation(len(photos))[:count].tolist()]
