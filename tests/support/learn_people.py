"""Made-up people for the tests: descriptors around a centre per person, and photos of colour patterns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def descriptors(
    people: int, faces: int, dim: int = 32, spread: float = 0.5, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((people, dim))
    rows = np.repeat(centres, faces, axis=0) + spread * rng.standard_normal((people * faces, dim))
    return rows.astype(np.float32), np.repeat(np.arange(people), faces).astype(np.str_)


def pattern(person: int, photo: int, size: int = 40) -> NDArray[np.uint8]:
    own = np.random.default_rng(person).uniform(0, 255, (4, 4, 3))
    noise = np.random.default_rng((person, photo)).normal(0, 12, (size, size, 3))
    big = np.asarray(Image.fromarray(own.astype(np.uint8)).resize((size, size), Image.Resampling.BICUBIC))
    return np.clip(big + noise, 0, 255).astype(np.uint8)


def photo_folder(root: Path, people: int, photos: int) -> Path:
    for person in range(people):
        folder = root / f"person-{person:03d}"
        folder.mkdir(parents=True)
        for photo in range(photos):
            Image.fromarray(pattern(person, photo)).save(folder / f"{photo}.png")
    return root
