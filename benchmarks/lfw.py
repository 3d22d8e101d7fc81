"""Faces on LFW: how many photos yield a face, and 10-fold verification on its own pairs.txt.

    python benchmarks/lfw.py [--lfw FOLDER] [--processes 2] [--detector mtcnn] [--save FILE.npz]

FOLDER holds `images/PERSON/PERSON_0001.jpg` and `lists/pairs.txt`. Of several faces in a photo the
one nearest its centre counts: that is the one LFW labels. A pair with a photo without a face is
called different. The threshold of each fold is the best one on the nine others. Wanted: at least
99.5 % of photos with a face and 99.0 % accuracy.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setnet.faces import FaceSettings, StageTimes, extract_faces, open_photo

DEFAULT = Path(os.environ.get("SETNET_LFW", Path(__file__).parents[2] / "shared" / "data" / "lfw"))
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Work:
    descriptor: Floats | None
    detector_seconds: float
    descriptor_seconds: float


def central_face(job: tuple[Path, FaceSettings]) -> Work:
    path, settings = job
    photo, times = open_photo(path), StageTimes()
    faces = extract_faces(photo, settings, times=times)

    def off_centre(i: int) -> float:
        box = faces[i].box
        return (box.x0 + box.x1 - photo.width) ** 2 + (box.y0 + box.y1 - photo.height) ** 2

    best = min(range(len(faces)), key=off_centre, default=None)
    descriptor = faces[best].descriptor if best is not None else None
    return Work(descriptor, times.detector, times.descriptor)


def read_pairs(file: Path) -> list[tuple[str, str, bool]]:
    def name(person: str, number: str) -> str:
        return f"{person}/{person}_{int(number):04d}.jpg"

    pairs = []
    for line in file.read_text(encoding="utf-8").splitlines()[1:]:
        words = line.split()
        if len(words) == 3:
            pairs.append((name(words[0], words[1]), name(words[0], words[2]), True))
        else:
            pairs.append((name(words[0], words[1]), name(words[2], words[3]), False))
    return pairs


def best_threshold(similarity: Floats, same: npt.NDArray[np.bool_]) -> float:
    """Return the middle of the thresholds that decide most of the pairs rightly."""
    order = np.argsort(similarity)
    ranked, truth = similarity[order], same[order]
    rejected_rightly = np.concatenate([[0], np.cumsum(~truth)])
    accepted_rightly = truth.sum() - np.concatenate([[0], np.cumsum(truth)])
    cuts = np.concatenate([[ranked[0] - 1], (ranked[1:] + ranked[:-1]) / 2, [ranked[-1] + 1]])
    right = rejected_rightly + accepted_rightly
    return float(np.median(cuts[right == right.max()]))


def verification(pairs: list[tuple[str, str, bool]], known: dict[str, Floats]) -> npt.NDArray[np.float64]:
    """Return the accuracy of each of the ten folds."""
    similarity = np.array(
        [float(known[a] @ known[b]) if a in known and b in known else -1.0 for a, b, _ in pairs], np.float32
    )
    same = np.array([pair[2] for pair in pairs])
    folds = np.arange(len(pairs)) * 10 // len(pairs)
    accuracies = []
    for fold in range(10):
        held = folds == fold
        threshold = best_threshold(similarity[~held], same[~held])
        accuracies.append(np.mean((similarity[held] >= threshold) == same[held]))
    return np.array(accuracies)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lfw", type=Path, default=DEFAULT)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--detector", default="mtcnn")
    parser.add_argument("--descriptor", default="sface")
    parser.add_argument("--save", type=Path, help="write descriptors, labels and paths there")
    options = parser.parse_args()
    images = options.lfw / "images"
    names = sorted(path.relative_to(images).as_posix() for path in images.glob("*/*.jpg"))
    if not names:
        raise SystemExit(f"no LFW photos in {images}: give their folder with --lfw")
    settings = FaceSettings(detector=options.detector, descriptor=options.descriptor)

    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        done = pool.map(central_face, [(images / name, settings) for name in names], chunksize=50)
    seconds = time.perf_counter() - began

    known = {n: work.descriptor for n, work in zip(names, done, strict=True) if work.descriptor is not None}
    if options.save:
        labels = [name.split("/")[0] for name in known]
        np.savez(options.save, descriptors=np.stack(list(known.values())), labels=labels, paths=list(known))
    detector = 1000 * sum(work.detector_seconds for work in done) / len(done)
    descriptor = 1000 * sum(work.descriptor_seconds for work in done) / len(done)
    folds = verification(read_pairs(options.lfw / "lists" / "pairs.txt"), known)
    print(f"models        {options.detector} + {options.descriptor}")
    print(f"photos        {len(names):,} in {seconds:.0f} s: {len(names) / seconds:.1f} per second", end="")
    print(
        f" by {options.processes} processes; detector {detector:.1f} ms, descriptor {descriptor:.1f} ms each"
    )
    print(f"with a face   {100 * len(known) / len(names):.2f} %  (wanted 99.5)")
    print(f"verification  {100 * folds.mean():.2f} % +- {100 * folds.std():.2f} over 10 folds  (wanted 99.0)")


if __name__ == "__main__":
    main()
