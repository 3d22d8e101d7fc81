"""The words of local descriptors and the axes of VLADs, learnt once from photos and shipped with setnet."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from setnet.durable import replace_file
from setnet.library.duplicates.dense_sift import Floats

WORDS = 64
WORD_DIM = 64
VLAD_DIM = 256
SHIPPED = "vocabulary.npz"
_MOST_PATCHES = 50_000
_ROUNDS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """What turns local descriptors into a short VLAD.

    Attributes
    ----------
    mean, axes
        (128,) and (128, `WORD_DIM`): the PCA of local descriptors.
    words
        (`WORDS`, `WORD_DIM`) centres of k-means.
    vlad_mean, vlad_axes
        (n,) and (n, `VLAD_DIM`) with n = `WORDS` x `WORD_DIM`: the PCA of VLADs, half whitened.
    """

    mean: Floats
    axes: Floats
    words: Floats
    vlad_mean: Floats
    vlad_axes: Floats

    def long_vlad(self, patches: Floats) -> Floats:
        """Return the VLAD of (n, 128) local descriptors: for each word, the sum of what patches differ by.

        The part of each word is scaled to unit length, so that a pattern that fills a photo counts once.
        """
        patches = _rooted(patches[patches.any(axis=1)])
        short = (patches - self.mean) @ self.axes
        nearest = np.argmax(short @ self.words.T - 0.5 * (self.words**2).sum(axis=1), axis=1)
        member = (nearest == np.arange(len(self.words))[:, None]).astype(np.float32)
        sums = member @ short - member.sum(axis=1, keepdims=True) * self.words
        return np.asarray(_unit(_unit(sums).ravel()), np.float32)

    def vlad(self, patches: Floats) -> Floats:
        """Return the short VLAD of (n, 128) local descriptors, at unit length; zeros if none has contrast."""
        long = self.long_vlad(patches)
        short = _unit((long - self.vlad_mean) @ self.vlad_axes)
        return np.asarray(short if long.any() else np.zeros_like(short), np.float32)

    def write(self, path: Path) -> None:
        """Write the vocabulary as an npz file; half precision is enough for it."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer, **{name: value.astype(np.float16) for name, value in asdict(self).items()}
        )
        replace_file(path, buffer.getbuffer())


@cache
def shipped_vocabulary() -> Vocabulary:
    """Return the vocabulary that comes with setnet."""
    with (
        files(__package__).joinpath(SHIPPED).open("rb") as file,
        np.load(file, allow_pickle=False) as arrays,
    ):
        return Vocabulary(**{name: arrays[name].astype(np.float32) for name in arrays.files})


def learn_vocabulary(photos: Sequence[Floats], seed: int = 0) -> Vocabulary:
    """Learn a vocabulary from the local descriptors, (n, 128) each, of a few thousand photos."""
    rng = np.random.default_rng(seed)
    patches = np.concatenate([p[p.any(axis=1)] for p in photos])
    patches = _rooted(patches[np.sort(rng.permutation(len(patches))[:_MOST_PATCHES])])
    mean = patches.mean(axis=0)
    axes = _principal(patches - mean, WORD_DIM)[0]
    short = np.ascontiguousarray((patches - mean) @ axes)
    cv2.setRNGSeed(seed)
    labels = np.zeros((len(short), 1), np.int32)
    until = (cv2.TERM_CRITERIA_MAX_ITER, _ROUNDS, 0)
    words = np.asarray(cv2.kmeans(short, WORDS, labels, until, 1, cv2.KMEANS_PP_CENTERS)[2], np.float32)
    begun = Vocabulary(mean, axes, words, np.zeros(0, np.float32), np.zeros((0, 0), np.float32))
    long = np.stack([begun.long_vlad(p) for p in photos])
    vlad_mean = long.mean(axis=0)
    vlad_axes, spread = _principal(long - vlad_mean, VLAD_DIM)
    return Vocabulary(mean, axes, words, vlad_mean, (vlad_axes / np.sqrt(spread)).astype(np.float32))


def _principal(rows: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the first principal axes of centred rows, (dim, count), and the deviations along them."""
    wide = len(rows) < rows.shape[1]  # then the matrix of rows with rows is smaller, and has the same values
    values, vectors = np.linalg.eigh((rows @ rows.T if wide else rows.T @ rows) / len(rows))
    values, vectors = values[: -count - 1 : -1], vectors[:, : -count - 1 : -1]
    axes = _unit((rows.T @ vectors).T).T if wide else vectors
    return np.asarray(axes, np.float32), np.sqrt(np.maximum(values, 1e-12))


def _rooted(patches: Floats) -> NDArray[np.float32]:
    """Return RootSIFT: square roots of histograms that add up to one."""
    return np.asarray(np.sqrt(patches / np.maximum(patches.sum(axis=1, keepdims=True), 1e-6)), np.float32)


def _unit(vectors: NDArray[Any]) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6))
