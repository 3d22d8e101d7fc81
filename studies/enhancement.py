"""Blurred and dark faces: crops that are made clearer before description, and means of two descriptions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate import read_split
from setnet.evaluate.measures import people_draws
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.settings import Settings as BaseSettings
from setnet.evaluate.settings import experiment, option, setting
from setnet.evaluate.tables import Column, Table, result_table
from setnet.faces import FaceSettings, load_descriptor
from setnet.faces.pipeline import find_faces
from setnet.heads import unit
from studies.degrade import degraded

TITLE = "Faces made clearer before description"
Pixels = NDArray[np.uint8]
Floats = NDArray[np.float32]
FALSE_MATCHES = 1e-4
KINDS = ("clean", "coarse", "shaken", "dark")


def darken(photo: Pixels, rng: np.random.Generator) -> Pixels:
    """Return a photo as of a room without light, with the noise of its sensor."""
    dark = photo * rng.uniform(0.12, 0.35) + rng.normal(0, 2.5, photo.shape)
    return np.clip(dark, 0, 255).astype(np.uint8)


def brighten(crop: Pixels) -> Pixels:
    """Return a dark crop with the gamma that gives it the light of a usual photo."""
    mean = max(float(crop.mean()), 2.0) / 255
    if mean > 0.35:
        return crop
    return np.asarray(255 * (crop / 255.0) ** (np.log(0.45) / np.log(mean)), np.uint8)


def equalise(crop: Pixels) -> Pixels:
    """Return the crop with its contrast evened out in tiles (CLAHE), colours as they are."""
    lab = cv2.cvtColor(crop, cv2.COLOR_RGB2LAB)
    lab[..., 0] = cv2.createCLAHE(2.0, (4, 4)).apply(lab[..., 0])
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), np.uint8)


def sharpen(crop: Pixels) -> Pixels:
    """Return the crop with its fine detail doubled."""
    return np.asarray(cv2.addWeighted(crop, 2.0, cv2.GaussianBlur(crop, (0, 0), 1.5), -1.0, 0), np.uint8)


CHANGES: Mapping[str, Callable[[Pixels], Pixels]] = {
    "as it is": lambda crop: crop,
    "mirrored": lambda crop: np.ascontiguousarray(crop[:, ::-1]),
    "brightened": brighten,
    "equalised": equalise,
    "sharpened": sharpen,
}
# A way is the mean of the descriptions of these crops, for examples and photos alike.
WAYS = [(name,) for name in CHANGES] + [("as it is", name) for name in [*CHANGES][1:]] + [tuple(CHANGES)]


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Enhancement of faces before description, at equal rates of false matches on LFW and degraded copies."""

    lfw: Path = field(
        metadata=option("LFW's folder of identities.", metavar="LFW", is_argument=True, counts=False)
    )
    photos: int = setting(350, "Photos of each half, of people with two to six.", minimum=10)


@dataclass(frozen=True, eq=False)
class Described:
    """Faces of one kind of photos: whose and which they are, and their descriptors for each change."""

    owner: NDArray[np.int64]
    photo: NDArray[np.int64]
    descriptors: Mapping[str, Floats]

    def by(self, way: Sequence[str]) -> Floats:
        return unit(np.mean([self.descriptors[name] for name in way], axis=0, dtype=np.float32))


@experiment("enhancement")
def run(run: Run, settings: Settings) -> None:
    """Measure each way on both halves of LFW's people; the training half is there to choose by."""
    split, found = read_split(), {}
    run.total = 2 * len(KINDS) + 1
    for half, names in (("train", split.train), ("test", split.test)):
        files = sample(settings.lfw, names, settings.photos, settings.seed)
        for kind in KINDS:
            run.say(f"{half} half: {kind} photos")
            found[half, kind] = describe(files, kind, settings.seed)
    run.note(faces={f"{half}, {kind}": len(one.owner) for (half, kind), one in found.items()})
    for way in WAYS:
        values, draws = {}, {}
        for (half, kind), faces in found.items():
            rates, people = true_matches(found[half, "clean"], faces, way)
            values[f"{half} {kind}"] = [100 * float(rates.mean())]
            draws[f"{half} {kind}"] = (100 * people_draws([rates], [people])).round(4).tolist()
        chosen = np.mean([values[f"train {kind}"] for kind in KINDS[1:]])
        run.add(Row(" + ".join(way), values, {"chosen_by": float(chosen)}, draws=draws))


def sample(lfw: Path, names: frozenset[str], count: int, seed: int) -> list[tuple[int, Path]]:
    """Return so many photos of people of a half with two to six of them, each with its person's number."""
    people = [sorted((lfw / name).glob("*.jpg")) for name in sorted(names)]
    several = [files for files in people if 2 <= len(files) <= 6]
    if not several:
        raise InvalidInputError(f"{lfw} holds no people with two photos: give LFW's folder of identities")
    order = np.random.default_rng((seed, 5)).permutation(len(several))
    rows = [(int(person), path) for person in order for path in several[person]]
    return rows[:count]


def describe(files: Sequence[tuple[int, Path]], kind: str, seed: int) -> Described:
    """Return the descriptors of the face in the middle of each photo, as it was found in the degraded copy."""
    rows = [
        (owner, number, crop)
        for number, (owner, path) in enumerate(files)
        if (crop := _middle_face(_photo(path, kind, (seed, number)))) is not None
    ]
    descriptor = load_descriptor("sface")
    described = {
        name: descriptor.describe([change(crop) for _, _, crop in rows]) for name, change in CHANGES.items()
    }
    owners, numbers = np.array([row[:2] for row in rows], np.int64).T
    return Described(owners, numbers, described)


def _photo(path: Path, kind: str, seed: tuple[int, int]) -> Pixels:
    photo = _decoded(path.read_bytes())
    if kind == "clean":
        return photo
    if kind == "dark":
        copy, quality = darken(photo, np.random.default_rng((*seed, 3))), 90
    else:
        copy, quality = degraded(photo, kind, seed[0] * 1_000_003 + seed[1])
    _, stored = cv2.imencode(".jpg", copy[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    return _decoded(stored.tobytes())


def _decoded(data: bytes) -> Pixels:
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if pixels is None:
        raise InvalidInputError("a photo of LFW cannot be decoded: is the folder complete?")
    return np.ascontiguousarray(pixels[..., ::-1], np.uint8)


def _middle_face(photo: Pixels) -> Pixels | None:
    faces = find_faces(photo, FaceSettings())
    middle = np.array(photo.shape[1::-1]) / 2
    away = [float(np.abs(face.landmarks.mean(axis=0) - middle).max()) for face in faces]
    return faces[int(np.argmin(away))].crop if faces and min(away) < photo.shape[1] / 5 else None


def true_matches(
    examples: Described, faces: Described, way: Sequence[str]
) -> tuple[NDArray[np.float64], list[list[int]]]:
    """Return, for each genuine pair, whether it is above all but one in 10,000 pairs of different people.

    A pair is an example from a clean photo and a face in another photo.
    """
    similarity = faces.by(way) @ examples.by(way).T
    same = faces.owner[:, None] == examples.owner
    genuine = same & (faces.photo[:, None] != examples.photo)
    threshold = np.quantile(similarity[~same], 1 - FALSE_MATCHES)
    owners = np.broadcast_to(faces.owner[:, None], same.shape)[genuine]
    return (similarity[genuine] > threshold).astype(np.float64), [[int(owner)] for owner in owners]


def tables(record: Record) -> list[Table]:
    """Return the true matches of each way on the test half, beside what the training half would choose."""
    columns = [Column("chosen_by", "degraded, training half", fact=True)]
    columns += [Column(f"test {kind}", kind) for kind in KINDS]
    note = (
        "True matches in percent at one false match in 10,000, threshold and rate per kind of photo; ± over "
        "people. Several names: the mean of these descriptions, of examples and photos alike."
    )
    return [result_table("Faces made clearer before description", record.rows, columns, note)]


if __name__ == "__main__":
    from setnet.cli.evaluate import run_study

    run_study(sys.modules[__name__], "python -m studies.enhancement")
