"""Decide who a face is: a person's vector, the background sample of a library, thresholds, and identities."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.engine import SetIndex
from setnet.errors import InvalidInputError
from setnet.library.person import Person
from setnet.library.query import QueryPerson, saved_people
from setnet.library.score_calibration import NonMatchScores, ScoreCalibration, model_calibration

if TYPE_CHECKING:
    from setnet.library.library import Library

_MIN_WEIGHT = 0.05  # what an example counts that is like none of the others


def person_vector(examples: NDArray[np.floating], name: str = "a person") -> NDArray[np.float32]:
    """Return a person's (dim,) vector of length 1: the mean of their examples, outliers weighted down.

    An example counts with the square of its mean similarity to the others. Among three examples of which one
    shows somebody else, that one counts a fifteenth of the others: the plain mean would find both people. Two
    examples say nothing about each other and count the same. `studies.matching` compares this with
    the plain mean and with the nearest example.

    >>> same, other = np.eye(3, dtype=np.float32)[:2]
    >>> person_vector(np.stack([same, same, other])).round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    rows = np.asarray(examples, np.float64)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    mean = example_weights(rows) @ rows
    length = float(np.linalg.norm(mean))
    if length < 1e-9:
        raise InvalidInputError(f"the examples of {name} cancel out: their mean is the zero vector")
    return np.asarray(mean / length, np.float32)


def example_weights(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much each of a person's examples counts, in all 1; `rows` are of length 1."""
    n = len(rows)
    if n < 3:
        return np.full(n, 1.0 / n)
    to_others = (rows @ rows.sum(axis=0) - 1.0) / (n - 1)
    weights = np.maximum(to_others, _MIN_WEIGHT) ** 2
    total: NDArray[np.float64] = weights / weights.sum()
    return total


FACES = 2048  # of a sample
_COMPARED = 1024  # of these, to see how many people they are
_ALIKE = 1e-4  # two faces that so few non-matches' are as similar as are one person's
_MIN_MEAN = 0.5  # standard deviations below the model's: so low it is for one person in fifty
_CUT = 3.0  # standard deviations above the mean: what is more similar may be the person
# How many people the model's constants count as: means differ more between sources of photos than spreads.
_PRIOR_FOR_MEAN, _PRIOR_FOR_SPREAD = 10.0, 250.0


@dataclass(frozen=True, slots=True, eq=False)
class BackgroundSample:
    """Some faces of a library, how many people they show in effect, and how many faces there are in all.

    The people of one library are more alike than those of another: of one family, one age, one part of the
    world, or in poor light. What non-matches' similarities are like is therefore measured where it matters.
    """

    sample: NDArray[np.float32]
    people: float
    faces: int

    @classmethod
    def of(cls, index: SetIndex, faces: int, model: ScoreCalibration) -> BackgroundSample:
        """Return the background of an index that has so many faces."""
        sample = index.sample(FACES)
        sample = sample / np.maximum(np.linalg.norm(sample, axis=1, keepdims=True), 1e-12)
        return cls.of_faces(sample, model, max(faces, len(sample)))

    @classmethod
    def of_faces(
        cls, descriptors: NDArray[np.float32], model: ScoreCalibration, faces: int | None = None
    ) -> BackgroundSample:
        """Return the background of a library of these descriptors, which are of length 1."""
        sample = evenly(descriptors)
        return cls(sample, effective_people(sample, model), len(descriptors) if faces is None else faces)

    def non_match_scores(
        self, vector: NDArray[np.floating], examples: int, model: ScoreCalibration
    ) -> NonMatchScores:
        """Return what non-matches' similarities to a person are like in this library.

        With few people in it, the model's constants weigh more; and non-matches that are less similar than in
        any ordinary library do not make a match sure. Faces that may be the person's are left out, however
        many they are.
        """
        known = model.non_match_scores(examples)
        if not len(self.sample):
            return known
        seen = measure_non_matches(self.sample, vector, known)
        mean = _weigh(seen.mean, self.people, known.mean, _PRIOR_FOR_MEAN)
        mean = max(mean, known.mean - _MIN_MEAN * known.spread)
        variance = _weigh(seen.spread**2, self.people, known.spread**2, _PRIOR_FOR_SPREAD)
        return NonMatchScores(mean, float(np.sqrt(variance)))


def evenly(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return as many of the rows as a sample has, or all there are, evenly spaced."""
    return rows[np.linspace(0, len(rows) - 1, min(FACES, len(rows))).astype(np.int64)]


def measure_non_matches(
    sample: NDArray[np.float32], vector: NDArray[np.floating], known: NonMatchScores
) -> NonMatchScores:
    """Return what similarities of a sample's faces are like, without those that may be the person's own.

    `known` says what non-matches' are like in general, and is returned where the sample has none.
    """
    seen = sample @ vector.astype(np.float32)
    seen = seen[seen < known.mean + _CUT * known.spread].astype(np.float64)
    return NonMatchScores(float(seen.mean()), float(seen.std())) if len(seen) > 1 else known


def effective_people(sample: NDArray[np.float32], model: ScoreCalibration) -> float:
    """Return how many people faces show in effect: the inverse of the chance that two show the same one.

    Of a thousand faces of which half are one person's, four in effect: their mean is as uncertain as that of
    four people.
    """
    some = sample[:: max(1, -(-len(sample) // _COMPARED))]
    if len(some) < 2:
        return float(len(some))
    alike = some @ some.T >= model.threshold(_ALIKE, model.non_match_scores(1))
    np.fill_diagonal(alike, True)
    return float(len(some) ** 2 / np.count_nonzero(alike))


def _weigh(seen: float, people: float, known: float, prior: float) -> float:
    return (people * seen + prior * known) / (people + prior)


# A sure match: one non-match in a million is as similar, one is expected in fifty searches, and even for
# a face so good that more similarity was to be expected, the odds are three to one.
_SURE_RATE, _SURE_FALSE, _SURE_PROBABILITY = 1e-6, 0.02, 0.75
# A match at all: at most one non-match in ten thousand, and ten among all faces searched.
_MAYBE_RATE, _MAYBE_FALSE = 1e-4, 10.0
# On LFW's training half, another face of a rejected person exceeds the rejected one by more in 3 % of cases.
_ABOVE_REJECTED = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class PersonMatcher:
    """Recognises one person among so many faces."""

    model: ScoreCalibration
    vector: NDArray[np.float32]  # (dim,) of length 1: what faces are compared with
    examples: int  # how many example faces it was made of
    non_matches: NonMatchScores  # what the similarities of other people's faces to it are like
    faces: int  # how many faces are searched
    # similarities from which a face is surely the person's, and maybe
    sure: float
    maybe: float
    # similarity at which the person is in a photo as probably as not: it adds one half to a photo's score
    even: float
    # how many times more false matches there were than expected, by what the user rejected; 1 or more
    strictness: float = 1.0

    @classmethod
    def of(
        cls,
        model: ScoreCalibration,
        vector: NDArray[np.float32],
        examples: int,
        non_matches: NonMatchScores,
        faces: int,
        rejected: NDArray[np.floating] | None = None,
    ) -> PersonMatcher:
        """Return the matcher of a person; `rejected` are similarities of faces said not to be theirs.

        Rejected faces are false matches that were seen. More of them than were to be expected raise both
        thresholds, and nothing that is as similar as one of them is sure. One rejected face that is as
        similar as own faces are may be a slip of the finger: at most one good own face in six is then no
        longer sure. With each more of them the limit rises.
        """
        wrong = np.zeros(0) if rejected is None else np.asarray(rejected, np.float64)
        rate = min(_MAYBE_RATE, _MAYBE_FALSE / max(faces, 1))
        seen = int((wrong >= model.threshold(rate, non_matches)).sum())
        strictness = max(1.0, (1.0 + seen) / (1.0 + faces * rate))
        maybe = model.threshold(rate / strictness, non_matches)
        sure = model.threshold(min(_SURE_RATE, _SURE_FALSE / max(faces, 1)) / strictness, non_matches)
        others = round(strictness * faces)
        probable = model.find_similarity(_SURE_PROBABILITY, examples, non_matches, others)
        mean, spread = model.genuine_to(examples)
        slips = int((wrong > mean - spread).sum())
        limit = mean + (slips - 2) * spread
        sure = max(sure, probable, maybe, *np.minimum(wrong + _ABOVE_REJECTED, limit).tolist())
        even = model.even(examples, non_matches, others)
        return cls(model, vector, examples, non_matches, faces, sure, maybe, even, strictness)

    @property
    def steepness(self) -> float:
        """How fast the odds of a false match fall as a similarity rises: by e every 1 / steepness."""
        return 1.0 / (self.model.tail_scale * self.non_matches.spread)

    def probability(self, similarity: float, face: Mapping[str, float] | None = None) -> float:
        """Return the probability that a face of this similarity is the person's; `face` says its quality."""
        return self.model.probability(
            similarity,
            self.examples,
            self.non_matches,
            round(self.strictness * self.faces),
            1.0 if face is None else self.model.quality(face),
        )


class PersonMatchers:
    """Makes the matchers of a library's people; the background is read again when the library changes."""

    def __init__(self, library: Library) -> None:
        self.path, self._library = library.path, library
        self._lock = threading.Lock()
        self._kept: tuple[tuple[int, int], BackgroundSample] | None = None

    @cached_property
    def model(self) -> ScoreCalibration:
        """The calibration of the library's descriptor model."""
        return model_calibration(self._library.settings)

    @property
    def background(self) -> BackgroundSample:
        """A sample of the library's faces."""
        catalog, index = self._library.photos, self._library.set_index
        state = catalog.commit(), len(index)
        with self._lock:
            if self._kept is None or self._kept[0] != state:
                self._kept = state, BackgroundSample.of(index, catalog.finished()[1], self.model)
            return self._kept[1]

    @property
    def threshold(self) -> float:
        """The similarity from which two faces may be one person's."""
        nobody = np.zeros(self._library.dim, np.float32)
        non_matches = self.model.non_match_scores(1)
        return PersonMatcher.of(self.model, nobody, 1, non_matches, self.background.faces).maybe

    def matcher(self, person: QueryPerson) -> PersonMatcher:
        """Return what recognises a person in this library."""
        background = self.background
        if not np.isfinite(person.descriptors).all():
            raise InvalidInputError(f"{person.name}: a descriptor holds NaN or infinity")
        vector = person_vector(person.descriptors, person.name)
        if vector.shape != (self._library.dim,):
            raise InvalidInputError(
                f"{person.name}: descriptors of {len(vector)} numbers; this library's have "
                f"{self._library.dim}"
            )
        examples = len(person.descriptors)
        non_matches = background.non_match_scores(vector, examples, self.model)
        rejected = self._similarities(vector, person.rejected)
        return PersonMatcher.of(self.model, vector, examples, non_matches, background.faces, rejected)

    def _similarities(
        self, vector: NDArray[np.float32], faces: frozenset[tuple[str, int]]
    ) -> NDArray[np.float32]:
        """Return how similar faces of photos are to a person; those that are gone are left out."""
        found: list[float] = []
        for photo, ordinal in sorted(faces):
            try:
                elements = self._library.set_index.elements(photo)
            except InvalidInputError:
                continue
            if ordinal < len(elements):
                found.append(float(elements[ordinal] @ vector))
        return np.array(found, np.float32)


class Identity(NamedTuple):
    """The saved person a face is recognised as; the name is empty when it is nobody's."""

    name: str
    similarity: float
    probability: float = 0.0
    sure: bool = False

    @property
    def label(self) -> str:
        """The person's name, with a question mark when it is not sure; empty for nobody."""
        return self.name if self.sure or not self.name else f"{self.name}?"

    def to_dict(self) -> dict[str, Any]:
        """Return the identity as values that JSON can hold."""
        return {
            "person": self.name or None,
            "similarity": round(self.similarity, 4) if self.name else None,
            "probability": round(self.probability, 6) if self.name else None,
            "sure": self.sure if self.name else None,
        }


@dataclass(frozen=True, slots=True, eq=False)
class NamedPeople:
    """The saved people, each with what recognises them among the faces of the library."""

    people: tuple[QueryPerson, ...]
    matchers: tuple[PersonMatcher, ...]
    vectors: NDArray[np.float32]
    thresholds: NDArray[np.float64]

    @classmethod
    def nobody(cls) -> NamedPeople:
        """Return an empty collection, which identifies nobody."""
        return cls((), (), np.zeros((0, 0), np.float32), np.zeros(0))

    @classmethod
    def of(cls, library: Library, only: Person | None = None) -> NamedPeople:
        """Return the saved people of a library, or one of them."""
        people = tuple(
            person
            for person in saved_people(library._database)
            if len(person.descriptors) and (only is None or person.id == only.id)
        )
        if not people:
            return cls.nobody()
        matchers = tuple(library._matchers.matcher(person) for person in people)
        vectors = np.stack([matcher.vector for matcher in matchers])
        return cls(people, matchers, vectors, np.array([r.maybe for r in matchers]))

    @property
    def names(self) -> tuple[str, ...]:
        """Who can be identified."""
        return tuple(person.name for person in self.people)

    def identify(
        self,
        descriptor: NDArray[np.float32],
        quality: Mapping[str, float] | None = None,
        face: tuple[str, int] | None = None,
    ) -> Identity:
        """Return whose face this is: the person whose threshold it exceeds by most.

        `face` is the photo's id and the number of the face in it, for what the user confirmed or rejected.
        """
        if not self.people:
            return Identity("", 0.0)
        similarities = self.vectors @ descriptor
        margins = similarities - self.thresholds
        for number, person in enumerate(self.people) if face is not None else ():
            if face in person.confirmed:
                return Identity(person.name, float(similarities[number]), 1.0, True)
            if face in person.rejected:
                margins[number] = -np.inf
        best = int(margins.argmax())
        similarity, matcher = float(similarities[best]), self.matchers[best]
        if margins[best] < 0:
            return Identity("", similarity)
        probability = matcher.probability(similarity, quality)
        return Identity(self.people[best].name, similarity, probability, similarity >= matcher.sure)
