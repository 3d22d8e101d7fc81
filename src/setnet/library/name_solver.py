"""Find out which face is whose where photos have names but no boxes, over all photos at once.

The face of a name is one that is in all of its photos, and in few without it. Each name has a vector, the
mean of the faces that are probably its own. In turn the vectors say which face of each photo is whose, and
the faces make new vectors (expectation maximisation). In a photo, each way to pair names with faces counts
by the odds that its pairs are one person's (`ScoreCalibration`) and by how often a name has no face and a
face no name, which the photos tell as well: so a face is also known by all others having their names.

What fits two ways stays open: of two people who are always together nobody can say who is who. The evidence
for a name's own face is therefore compared with that for every other face that is often beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.library.score_calibration import ScoreCalibration

Floats = NDArray[np.float64]
SURE = 0.95  # probability from which a pair needs no question
MAYBE = 0.3  # and from which it is worth one
_ROUNDS, _SETTLED = 12, 0.01  # rounds at most, and the change of probabilities that ends them
# Logarithm of how much better a name's face must explain its photos than any other: one photo that tells them
# apart is enough for a face in three photos or more, of two photos both must. Chosen on LFW's training half.
_MIN_EVIDENCE, _MIN_EVIDENCE_OF_FEW, _FEW = 2.0, 4.0, 3
_MISSING, _UNTAGGED = 0.1, 0.1  # shares of a name's photos without its face, and of its face without the name
_MOST_EXACT = 8  # names of a photo for which all ways to pair are counted
_GRID = np.linspace(-1.0, 1.0, 801)


@dataclass(frozen=True, slots=True, eq=False)
class PhotoWithNames:
    """A photo: who is in it, and the (n, dim) descriptors of its faces, of length 1."""

    names: tuple[str, ...]
    faces: NDArray[np.float32]


class SolvedFace(NamedTuple):
    """A face that is probably a name's; `sure` says that nothing else fits."""

    photo: int
    face: int
    name: str
    probability: float
    sure: bool


def solve_names(
    photos: Sequence[PhotoWithNames],
    model: ScoreCalibration,
    known: Mapping[str, NDArray[np.float32]] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[SolvedFace]:
    """Return who is who in photos with names, by photo and face; `known` has example faces of names."""
    if not photos:
        return []
    solver = _Solver(photos, model, known or {})
    for number in range(_ROUNDS):
        if progress is not None:
            progress("comparing names and faces", number, _ROUNDS)
        if solver.pair() < _SETTLED:
            break
        solver.average()
    return solver.solved()


class _Solver:
    def __init__(
        self,
        photos: Sequence[PhotoWithNames],
        model: ScoreCalibration,
        known: Mapping[str, NDArray[np.float32]],
    ) -> None:
        self._photos, self._model = photos, model
        self.names = sorted({name for photo in photos for name in photo.names})
        number = {name: i for i, name in enumerate(self.names)}
        self._named = [np.array([number[name] for name in photo.names], np.int64) for photo in photos]
        dim = photos[0].faces.shape[1]
        self._anchors = np.zeros((len(self.names), dim))
        self._anchor_weights = np.zeros(len(self.names))
        for name, examples in known.items():
            if name in number:
                self._anchors[number[name]] = examples.sum(axis=0)
                self._anchor_weights[number[name]] = len(examples)
        # of each photo, (names, faces): how probably they are one person's; at first all faces alike
        self.shares = [
            np.full((len(named), len(photo.faces)), 1.0 / max(1, len(photo.faces)))
            for named, photo in zip(self._named, photos, strict=True)
        ]
        self._odds: dict[int, Floats] = {}
        self._pair_odds = 10.0
        self.average()

    def average(self) -> None:
        """Make the names' vectors, and count how often names and faces are without the other."""
        self._sums, self._weights = self._anchors.copy(), self._anchor_weights.copy()
        found = total = faces = 0.0
        for named, photo, share in zip(self._named, self._photos, self.shares, strict=True):
            self._sums[named] += share @ photo.faces
            self._weights[named] += share.sum(axis=1)
            found, total, faces = found + share.sum(), total + len(named), faces + len(photo.faces)
        missing = np.clip((total - found + 1) / (total + 2), 0.02, 0.5)
        others = max((faces - found + 1) / (len(self._photos) + 1), 0.05)
        self._pair_odds = (1 - missing) / (missing * others)

    def pair(self) -> float:
        """Say how probably names and faces of each photo are one person's; return the largest change."""
        change = 0.0
        for at, (named, photo) in enumerate(zip(self._named, self._photos, strict=True)):
            if len(photo.faces) and len(named):
                shares = pair_shares(self._pair_odds * self._likelihoods(at, named, photo.faces))
                change = max(change, float(np.abs(shares - self.shares[at]).max(initial=0.0)))
                self.shares[at] = shares
        return change

    def _likelihoods(self, at: int, named: NDArray[np.int64], faces: NDArray[np.float32]) -> Floats:
        """Return how many times more probable faces are as the names' than as non-matches'.

        A photo says nothing about itself: the vectors are those of the other photos.
        """
        sums = self._sums[named] - self.shares[at] @ faces
        weights = self._weights[named] - self.shares[at].sum(axis=1)
        similarity = sums @ faces.T / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
        found: Floats = np.ones(similarity.shape)
        for row in np.flatnonzero(weights > 0.5):
            found[row] = np.interp(similarity[row], _GRID, self._odds_for(round(weights[row])))
        return found

    def _odds_for(self, examples: int) -> Floats:
        examples = max(1, min(examples, 30))
        if examples not in self._odds:
            non_matches = self._model.non_match_scores(examples)
            chances = [self._model.probability(s, examples, non_matches, 1, expected=1.0) for s in _GRID]
            p: Floats = np.clip(chances, 1e-9, 1 - 1e-9)
            self._odds[examples] = np.minimum(2 * p / (1 - p), 1e6)
        return self._odds[examples]

    def solved(self) -> list[SolvedFace]:
        """Return the pairs that are probable."""
        clear = self._clear_names()
        found = []
        for at, (named, share) in enumerate(zip(self._named, self.shares, strict=True)):
            for row, face in zip(*np.nonzero(share >= MAYBE), strict=True):
                p = float(share[row, face])
                is_sure = p >= SURE and bool(clear[named[row]])
                found.append(SolvedFace(at, int(face), self.names[named[row]], p, is_sure))
        return found

    def _clear_names(self) -> NDArray[np.bool_]:
        """Return for which names no other face explains the photos nearly as well.

        Other faces are those of the other names, and whoever else is most often beside the name.
        """
        vectors = self._sums / np.maximum(np.linalg.norm(self._sums, axis=1, keepdims=True), 1e-9)
        presence = self._presence(vectors, np.maximum(self._weights, 1))
        has_name = np.zeros_like(presence)
        for at, named in enumerate(self._named):
            has_name[named, at] = True
        clear = np.zeros(len(self.names), bool)
        others = self._other_faces()
        beside = self._presence(*others)
        for name in range(len(self.names)):
            if self._anchor_weights[name]:
                clear[name] = True
                continue
            with_name = has_name[name]
            candidates = np.flatnonzero(has_name[:, with_name].any(axis=1))
            rivals = np.concatenate([presence[candidates[candidates != name]], beside[name : name + 1]])
            own = _evidence(presence[name : name + 1], with_name)[0]
            is_few = (presence[name] & with_name).sum() < _FEW
            margin = own - _evidence(rivals, with_name).max()
            clear[name] = margin >= (_MIN_EVIDENCE_OF_FEW if is_few else _MIN_EVIDENCE)
        return clear

    def _presence(self, vectors: Floats, weights: Floats) -> NDArray[np.bool_]:
        """Return (vectors, photos): whether a face of the photo is rather the vector's than a non-match's."""
        limits = np.array([self._even(round(weight)) for weight in weights])
        found = np.zeros((len(vectors), len(self._photos)), bool)
        sizes = [len(photo.faces) for photo in self._photos]
        if sum(sizes):
            every = np.concatenate([photo.faces for photo in self._photos])
            ends = np.cumsum([0, *sizes])
            matches = vectors @ every.T >= limits[:, None]
            for at, (start, end) in enumerate(pairwise(ends)):
                found[:, at] = matches[:, start:end].any(axis=1)
        return found

    def _even(self, examples: int) -> float:
        """Return the similarity from which a face is ten times rather the person's than a non-match's."""
        odds = self._odds_for(max(1, examples))
        return float(_GRID[min(int(np.argmax(odds >= 10.0)), len(_GRID) - 1)])

    def _other_faces(self) -> tuple[Floats, Floats]:
        """Return for each name who else is most often in its photos, without a name there: vector, weight."""
        left = defaultdict[int, list[NDArray[np.float32]]](list)
        for named, photo, share in zip(self._named, self._photos, self.shares, strict=True):
            unnamed = photo.faces[share.sum(axis=0) < 0.5]
            for name in named.tolist():
                left[name].append(unnamed)
        vectors, weights = np.zeros_like(self._sums), np.ones(len(self.names))
        limit = self._even(1)
        for name, faces in left.items():
            rows = np.concatenate(faces)[:2000]
            if len(rows):
                alike = rows @ rows.T >= limit
                best = rows[alike[int(alike.sum(axis=0).argmax())]]
                vectors[name] = best.sum(axis=0) / max(float(np.linalg.norm(best.sum(axis=0))), 1e-9)
                weights[name] = len(best)
        return vectors, weights


def _evidence(presence: NDArray[np.bool_], with_name: NDArray[np.bool_]) -> Floats:
    """Return the logarithm of how probable it is that a face is where it is, if it is the name's."""
    there, gone = presence[:, with_name].sum(axis=1), (~presence[:, with_name]).sum(axis=1)
    elsewhere = presence[:, ~with_name].sum(axis=1)
    counts = np.stack([there, gone, elsewhere], axis=1)
    return np.asarray(counts @ np.log([1 - _MISSING, _MISSING, _UNTAGGED]), np.float64)


def pair_shares(odds: Floats) -> Floats:
    """Return how probable each pair is, if a way to pair rows with columns counts by the product of its odds.

    >>> pair_shares(np.array([[9.0, 1.0], [1.0, 9.0]])).round(2).tolist()
    [[0.87, 0.02], [0.02, 0.87]]
    """
    rows, columns = odds.shape
    if rows == 1:
        return np.asarray(odds / (1 + odds.sum()), np.float64)
    if rows > _MOST_EXACT:
        weakest = 1 + odds.sum(axis=1, keepdims=True) + odds.sum(axis=0, keepdims=True) - odds
        return np.asarray(odds / weakest, np.float64)
    values = odds.T.tolist()  # plain numbers: for so few NumPy takes ten times as long
    before, after = _ways(values, rows), _ways(values[::-1], rows)[::-1]
    every, shares = (1 << rows) - 1, np.empty_like(odds)
    for column in range(columns):
        first, rest = before[column], after[column + 1]
        for row in range(rows):  # of each set of rows: the weight of all ways that leave the others alone
            bit = 1 << row
            rest = [
                weight + (rest[rows_in ^ bit] if rows_in & bit else 0.0)
                for rows_in, weight in enumerate(rest)
            ]
        weights = [
            values[column][row]
            * sum(
                w * rest[every ^ rows_in ^ (1 << row)]
                for rows_in, w in enumerate(first)
                if not rows_in >> row & 1
            )
            for row in range(rows)
        ]
        none = sum(w * rest[every ^ rows_in] for rows_in, w in enumerate(first))
        shares[:, column] = np.array(weights) / (none + sum(weights))
    return shares


def _ways(values: Sequence[Sequence[float]], rows: int) -> list[list[float]]:
    """Return, before each column and after the last, the weight of each set of rows paired by then."""
    ways = [[1.0] + [0.0] * ((1 << rows) - 1)]
    for odds in values:
        weights = ways[-1][:]
        for row in range(rows):
            bit = 1 << row
            for rows_in, weight in enumerate(ways[-1]):
                if weight and not rows_in & bit:
                    weights[rows_in | bit] += odds[row] * weight
        total = sum(weights)
        ways.append([weight / total for weight in weights])
    return ways
