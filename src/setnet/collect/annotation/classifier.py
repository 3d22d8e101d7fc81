"""Scores of a face for every name: a softmax over the names and "nobody of the list"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.collect.annotation.rules import NamedScore
from setnet.errors import InvalidInputError
from setnet.library import read_arrays

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FaceClassifier:
    """A linear classifier of descriptors, followed by a softmax.

    Attributes
    ----------
    names
        The classes.
    weights, bias
        (names, D) and (names,): the logit of a name is ``weights @ descriptor + bias``.
    nobody
        The logit of nobody in the list, whatever the face; minus infinity leaves that class out, as in the
        paper's classifier.
    """

    names: tuple[str, ...]
    weights: Floats
    bias: Floats
    nobody: float = -np.inf

    def scores(self, descriptors: Floats) -> NDArray[np.float64]:
        """Return (n, names): the share of each name in the softmax."""
        return softmax(descriptors @ self.weights.T + self.bias, self.nobody)

    def ranked(self, descriptors: Floats, best: int) -> list[list[NamedScore]]:
        """Return for each face the names with the highest scores, highest first."""
        scores = self.scores(descriptors)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :best]
        return [
            [NamedScore(self.names[i], float(row[i])) for i in chosen.tolist()]
            for row, chosen in zip(scores, order, strict=True)
        ]

    @classmethod
    def of_portraits(cls, gallery: Mapping[str, Floats], sharpness: float, nobody: float) -> FaceClassifier:
        """Return the classifier by similarity to portraits.

        The logit of a name is ``sharpness`` times the mean similarity to its portraits. Such a mean
        does not grow with the number of portraits, as the similarity to their renormalised mean would.
        """
        means = np.stack([rows.mean(axis=0) for rows in gallery.values()]).astype(np.float32)
        return cls(tuple(gallery), np.float32(sharpness) * means, np.zeros(len(means), np.float32), nobody)

    @classmethod
    def read(cls, path: Path) -> FaceClassifier:
        """Read a classifier of one's own: an ``.npz`` with ``names``, ``weights`` and ``bias``."""
        names, weights, bias = read_arrays(path, ("names", "weights", "bias"))
        if weights.ndim != 2 or names.shape != weights.shape[:1] or bias.shape != names.shape:
            raise InvalidInputError(
                f"{path}: names {names.shape}, weights {weights.shape} and bias {bias.shape} do not fit "
                "(n,), (n, D) and (n,)"
            )
        numbers = [np.asarray(array, np.float32) for array in (weights, bias)]
        if not all(np.isfinite(array).all() for array in numbers):
            raise InvalidInputError(f"{path}: weights or bias hold NaN or infinity")
        return cls(tuple(names.astype(str).tolist()), numbers[0], numbers[1])


def softmax(logits: NDArray[np.floating], nobody: float) -> NDArray[np.float64]:
    """Return the softmax of each row over its logits and one more class; without the share of that.

    >>> softmax(np.array([[0.0, 0.0]]), 0.0).round(2).tolist()
    [[0.33, 0.33]]
    """
    wide = np.asarray(logits, np.float64)
    top = np.maximum(wide.max(axis=1, keepdims=True), nobody)
    shares = np.exp(wide - top)
    total: NDArray[np.float64] = shares / (shares.sum(axis=1, keepdims=True) + np.exp(nobody - top))
    return total
