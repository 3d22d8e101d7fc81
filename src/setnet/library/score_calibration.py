"""What a similarity means: how often a non-match reaches it, and how probable it is that it is the person."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from setnet.errors import InvalidInputError

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_NORMAL = NormalDist()
_EXPECTED = 10.0  # faces of the person asked for, among all that are searched
# The same where people are asked for together, times the root of the number of faces searched: they are in
# photos together, and who is asked for in a large library is in many of its photos. Chosen on LFW's training
# half and its copies; `studies.matching` shows how photos are ordered by it.
_EXPECTED_TOGETHER = 20.0


class NonMatchScores(NamedTuple):
    """Mean and standard deviation of non-matches' similarities to a person."""

    mean: float
    spread: float


@dataclass(frozen=True, slots=True)
class ScoreCalibration:
    """The meaning of similarities under one descriptor model."""

    # mean similarity of non-matches to one example of a person, and to the mean of many
    non_match: float
    non_match_many: float
    spread: float  # standard deviation of non-matches' similarities
    # where the tail begins, in standard deviations above the mean; the share of non-matches in it; and how
    # far a similarity must rise, in standard deviations, for that share to fall by a factor of e
    tail_from: float
    tail_rate: float
    tail_scale: float
    # mean similarity of a good face of the person to one example, and to the mean of many
    genuine: float
    genuine_many: float
    # standard deviation of these
    genuine_spread: float
    genuine_spread_many: float
    # share of the person's own faces that are no more similar than half of that, as in disguise
    stray: float
    # how the similarity of the person's own face falls when it is small, blurred or turned, or when the
    # detector doubts that it is one: logarithms for each unit of `costs`
    small: float
    blurred: float
    turned: float
    doubtful: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InvalidInputError(f"calibration: {name!r} must be a number, not {value!r}")
        positive = ("spread", "tail_scale", "genuine_spread", "genuine_spread_many", "tail_from")
        bad = [name for name in positive if getattr(self, name) <= 0]
        if bad or not 0 < self.tail_rate < 0.5 or not 0 < self.stray < 1:
            name = bad[0] if bad else "tail_rate and stray"
            raise InvalidInputError(f"calibration: {name} must be positive, and the rates below one")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ScoreCalibration:
        """Return the model in a mapping; a name that is missing or unknown is refused."""
        names = {field.name for field in fields(cls)}
        if wrong := sorted(names ^ set(values)):
            raise InvalidInputError(
                f"calibration: {', '.join(wrong)} missing or unknown; needed are {', '.join(sorted(names))}"
            )
        return cls(**values)

    def to_dict(self) -> dict[str, float]:
        """Return the constants as values that JSON and TOML can hold."""
        return asdict(self)

    def non_match_scores(self, examples: int) -> NonMatchScores:
        """Return what non-matches' similarities are like to a person known by so many examples.

        The mean of several examples is closer to the middle of all faces than one example is.
        """
        return NonMatchScores(
            self._approach_limit(self.non_match, self.non_match_many, examples), self.spread
        )

    def genuine_to(self, examples: int) -> tuple[float, float]:
        """Return mean and spread of good own faces' similarities to a person known by so many examples."""
        return (
            self._approach_limit(self.genuine, self.genuine_many, examples),
            self._approach_limit(self.genuine_spread, self.genuine_spread_many, examples),
        )

    def false_match_rate(self, similarity: float, non_matches: NonMatchScores) -> float:
        """Return the share of non-matches that are as similar as this, or more."""
        z = (similarity - non_matches.mean) / non_matches.spread
        if z > self.tail_from:
            return self.tail_rate * math.exp(-(z - self.tail_from) / self.tail_scale)
        return min(1.0, self._factor * _NORMAL.cdf(-z))

    def threshold(self, rate: float, non_matches: NonMatchScores) -> float:
        """Return the similarity that this share of non-matches reaches."""
        if rate <= self.tail_rate:
            z = self.tail_from + self.tail_scale * math.log(self.tail_rate / rate)
        else:
            z = -_NORMAL.inv_cdf(min(rate / self._factor, 0.5))
        return non_matches.mean + z * non_matches.spread

    def probability(
        self,
        similarity: float,
        examples: int,
        non_matches: NonMatchScores,
        faces: int,
        quality: float = 1.0,
        expected: float = _EXPECTED,
    ) -> float:
        """Return the probability that a face of this similarity is the person's.

        By Bayes' rule, with prior odds of `expected` faces of the person among all `faces` that were
        searched: the more were searched, the more non-matches can be this similar. `quality` is the share of
        its similarity that a face as small, blurred or turned as this one keeps.
        """
        mean, spread = self.genuine_to(examples)
        mean *= quality
        genuine = (1 - self.stray) * _rising(similarity, mean, spread)
        genuine += self.stray * _rising(similarity, 0.5 * mean, 2 * spread)
        odds = expected / (expected + faces) * genuine / self._density(similarity, non_matches)
        return odds / (1.0 + odds)

    def find_similarity(
        self,
        probability: float,
        examples: int,
        non_matches: NonMatchScores,
        faces: int,
        expected: float = _EXPECTED,
    ) -> float:
        """Return the similarity at which a good face is this probably the person's; a worse one is sooner."""
        low, high = non_matches.mean, 1.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            if self.probability(middle, examples, non_matches, faces, expected=expected) < probability:
                low = middle
            else:
                high = middle
        return high

    def even(self, examples: int, non_matches: NonMatchScores, faces: int) -> float:
        """Return the similarity at which a person asked for with others is there as probably as not.

        Order and certainty are two questions: which photos come first is decided by how many of the people
        are probably there, what is sure by how often non-matches are as similar.
        """
        expected = _EXPECTED_TOGETHER * math.sqrt(max(faces, 1))
        return self.find_similarity(0.5, examples, non_matches, faces, expected)

    def quality(self, face: Mapping[str, float]) -> float:
        """Return the share of its similarity that a face keeps for its size, sharpness and turn."""
        small, blurred, turned, doubtful = self.costs(face)
        lost = self.small * small + self.blurred * blurred + self.turned * turned + self.doubtful * doubtful
        return math.exp(-lost)

    @staticmethod
    def costs(face: Mapping[str, float]) -> tuple[float, float, float, float]:
        """Return how small, blurred, turned and doubtful a face is; 0 for a good one.

        `face` has the numbers of `setnet.faces.Quality`; what is not known costs nothing. The square of
        the halvings of 112 pixels, which is what networks look at; how much of an ordinary sharpness is
        missing; the square of the turn over 45 degrees; what the detector's score lacks.
        """
        small = max(0.0, math.log2(112.0 / max(face.get("size", 112.0), 1.0))) ** 2
        blurred = max(0.0, 1.0 - face.get("sharpness", 0.2) / 0.2)
        turned = (face.get("yaw", 0.0) ** 2 + face.get("pitch", 0.0) ** 2) / 45.0**2
        return min(small, 16.0), blurred, min(turned, 4.0), min(max(0.0, 1.0 - face.get("score", 1.0)), 0.3)

    @staticmethod
    def _approach_limit(one: float, many: float, examples: int) -> float:
        return many + (one - many) / max(1, examples)

    @property
    def _factor(self) -> float:
        """How many times the share of a normal distribution lies beyond where the tail begins."""
        return self.tail_rate / _NORMAL.cdf(-self.tail_from)

    def _density(self, similarity: float, non_matches: NonMatchScores) -> float:
        """Return the density of non-matches' similarities, which falls from their mean on."""
        z = max(0.0, (similarity - non_matches.mean) / non_matches.spread)
        if z > self.tail_from:
            tail = self.tail_rate / self.tail_scale
            return max(tail * math.exp(-(z - self.tail_from) / self.tail_scale) / non_matches.spread, 1e-290)
        return self._factor * _NORMAL.pdf(z) / non_matches.spread


def _rising(similarity: float, mean: float, spread: float) -> float:
    """Return a normal density that does not fall above its mean: no own face is too similar."""
    z = min(0.0, (similarity - mean) / spread)
    return math.exp(-0.5 * z * z) / (spread * math.sqrt(2 * math.pi))


def model_calibration(settings: FaceSettings) -> ScoreCalibration:
    """Return the constants of a library's descriptor model."""
    from setnet.faces.settings import load_calibration

    return ScoreCalibration.of(load_calibration(settings.descriptor, "match"))
