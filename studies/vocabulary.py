"""Learns the vocabulary of near-duplicates, which setnet ships: words of local descriptors, axes of VLADs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from setnet.durable import replace_file
from setnet.library.vlad import VLAD_DIM, WORD_DIM, WORDS, Floats, Vocabulary, root_sift, unit_vectors

_MAX_PATCHES = 50_000
_ROUNDS = 20


def write_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    """Write a vocabulary as an npz file; half precision is enough for it."""
    buffer = io.BytesIO()
    arrays = {name: value.astype(np.float16) for name, value in asdict(vocabulary).items()}
    np.savez_compressed(buffer, **arrays)
    replace_file(path, buffer.getbuffer())


def learn_vocabulary(photos: Sequence[Floats], seed: int = 0) -> Vocabulary:
    """Learn a vocabulary from the local descriptors, (n, 128) each, of a few thousand photos."""
    import cv2

    rng = np.random.default_rng(seed)
    patches = np.concatenate([p[p.any(axis=1)] for p in photos])
    patches = root_sift(patches[np.sort(rng.permutation(len(patches))[:_MAX_PATCHES])])
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
    axes = unit_vectors((rows.T @ vectors).T).T if wide else vectors
    return np.asarray(axes, np.float32), np.sqrt(np.maximum(values, 1e-12))
