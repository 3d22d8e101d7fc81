"""Decides from a similarity whether a face is a person's: surely, maybe, or with which probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.library.recognition.probability import MatchModel, Strangers

# A sure match: one stranger in a million is as similar, one is to be expected in fifty searches, and even for
# a face so good that more similarity was to be expected, the odds are three to one.
_SURE_RATE, _SURE_FALSE, _SURE_PROBABILITY = 1e-6, 0.02, 0.75
# A match at all: at most one stranger in ten thousand, and ten among all faces searched.
_MAYBE_RATE, _MAYBE_FALSE = 1e-4, 10.0
# On LFW's training half, another face of a refused stranger exceeds the one refused by more in 3 % of cases.
_ABOVE_REFUSED = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Recogniser:
    """Recognises one person among so many faces.

    Attributes
    ----------
    vector
        (dim,) of length 1: what faces are compared with.
    examples
        How many example faces it was made of.
    strangers
        What the similarities of other people's faces to it are like.
    faces
        How many faces are searched.
    sure, maybe
        Similarities from which a face is surely the person's, and maybe.
    even
        Similarity at which the person is in a photo as probably as not: it adds one half to a photo's score.
    strictness
        How many times more false matches there were than expected, by what the user refused; 1 or more.
    """

    model: MatchModel
    vector: NDArray[np.float32]
    examples: int
    strangers: Strangers
    faces: int
    sure: float
    maybe: float
    even: float
    strictness: float = 1.0

    @classmethod
    def of(
        cls,
        model: MatchModel,
        vector: NDArray[np.float32],
        examples: int,
        strangers: Strangers,
        faces: int,
        refused: NDArray[np.floating] | None = None,
    ) -> Recogniser:
        """Return the recogniser of a person; `refused` are similarities of faces said not to be theirs.

        Refused faces are false matches that were seen. More of them than were to be expected raise both
        thresholds, and nothing that is as similar as one of them is sure.
        """
        wrong = np.zeros(0) if refused is None else np.asarray(refused, np.float64)
        rate = min(_MAYBE_RATE, _MAYBE_FALSE / max(faces, 1))
        seen = int((wrong >= model.threshold(rate, strangers)).sum())
        strictness = max(1.0, (1.0 + seen) / (1.0 + faces * rate))
        maybe = model.threshold(rate / strictness, strangers)
        sure = model.threshold(min(_SURE_RATE, _SURE_FALSE / max(faces, 1)) / strictness, strangers)
        others = round(strictness * faces)
        probable = model.similarity_of(_SURE_PROBABILITY, examples, strangers, others)
        sure = max(sure, probable, maybe, *(wrong + _ABOVE_REFUSED).tolist())
        even = model.even(examples, strangers, others)
        return cls(model, vector, examples, strangers, faces, sure, maybe, even, strictness)

    @property
    def steepness(self) -> float:
        """How fast the odds of a false match fall as a similarity rises: by e every 1 / steepness."""
        return 1.0 / (self.model.tail_scale * self.strangers.spread)

    def expected_false(self, similarity: float) -> float:
        """Return how many strangers among all faces searched are expected to be as similar as this."""
        return self.strictness * self.faces * self.model.false_match_rate(similarity, self.strangers)

    def probability(self, similarity: float, face: Mapping[str, float] | None = None) -> float:
        """Return the probability that a face of this similarity is the person's; `face` says its quality."""
        return self.model.probability(
            similarity,
            self.examples,
            self.strangers,
            round(self.strictness * self.faces),
            1.0 if face is None else self.model.quality(face),
        )
