"""How well `setnet duplicates` finds altered copies of LFW's photos, beside perceptual hashes, and at scale.

    python -m studies.duplicates learn                  # the shipped vocabulary, from the training half
    python -m studies.duplicates quality [--planted 200] [--others 1500] [--json FILE] [--page FILE.md]
    python -m studies.duplicates scale [--photos 100000] [--json FILE] [--page FILE.md]

`quality` plants altered copies of random photos among those of the most photographed people of the same half
of LFW, many of which are of one event. Thresholds are the lowest that reach a precision on the training half;
recall and precision are of the test half. A pair is a copy or an original with an original; pairs that show one
press photo, or are listed as one photograph twice, do not count. All methods may mirror. `--pairs FILE` lists
the wrong pairs that agree most, to look at them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does

import numpy as np
from numpy.typing import NDArray

from benchmarks.support.performance_page import machine, write_section
from setnet.faces import open_photo
from setnet.library.duplicates import AGREEMENT, PhotoPairs, find_candidates
from setnet.library.vlad import DIM, SHIPPED, dense_sift, photo_vlads, small_grey
from setnet.system import peak_memory, usable_cores
from studies.alterations import ALTERATIONS, Pixels
from studies.perceptual_hashes import HASHES
from studies.planted_collections import Collection, names_of, of_lfw, of_synthetic_people, without_faces
from studies.vocabulary import learn_vocabulary, write_vocabulary

LFW = Path(__file__).parents[2] / "shared" / "data" / "lfw"
LIBRARY = Path(__file__).parents[1] / "src" / "setnet" / "library"
PRECISIONS = (0.99, 0.999)
VLAD, OURS = "VLAD alone", "setnet duplicates"


@dataclass(frozen=True, eq=False)
class Scores:
    """Pairs of files with a score by one method, most of all pairs left out: those with a low score.

    `kind` is the alteration of a true pair, a copy with its original; -1 marks a wrong pair.
    """

    score: NDArray[np.float64]
    kind: NDArray[np.int64]
    one: NDArray[np.int64]
    other: NDArray[np.int64]

    def threshold(self, precision: float) -> float:
        """Return the lowest score from which on so many of the pairs are true."""
        order = np.argsort(-self.score, kind="stable")
        true = np.cumsum(self.kind[order] >= 0)
        last = np.append(np.diff(self.score[order]) != 0, True)  # equal scores pass together
        good = np.flatnonzero(last & (true >= precision * np.arange(1, len(order) + 1)))
        return float(self.score[order][good[-1]]) if len(good) else np.inf

    def recalls(self, threshold: float, planted: int) -> list[float]:
        """Return which share of the copies of each kind is found."""
        found = self.kind[self.score >= threshold]
        return [float((found == way).sum()) / planted for way in range(len(ALTERATIONS))]

    def wrong(self, threshold: float) -> int:
        """Return how many wrong pairs are found."""
        return int((self.kind[self.score >= threshold] < 0).sum())

    def precision(self, threshold: float) -> float:
        """Return which share of the pairs found is true."""
        found = int((self.score >= threshold).sum())
        return 1 - self.wrong(threshold) / found if found else 1.0


def judged(
    photos: Collection, score: NDArray[np.float64], one: NDArray[np.int64], other: NDArray[np.int64]
) -> Scores:
    """Return the pairs that count, copies first; `other` are originals."""
    keep = photos.counts(one, other)
    one, other, score = one[keep], other[keep], score[keep]
    true = (photos.source[one] == photos.source[other]) & (photos.kind[one] >= 0)
    return Scores(score, np.where(true, photos.kind[one], -1), one, other)


def compared_with_all(photos: Collection, vectors: NDArray[np.float32], keep: float) -> Scores:
    """Compare every file with every original, as it is and mirrored; scores below `keep` are left out."""
    originals = photos.originals
    one, other, score = [], [], []
    for number in range(len(photos.files)):
        row = np.maximum(
            vectors[originals, 0] @ vectors[number, 0], vectors[originals, 1] @ vectors[number, 0]
        )
        near = originals[(row >= keep) & ((photos.kind[number] >= 0) | (originals < number))]
        one.append(np.full(len(near), number))
        other.append(near)
        score.append(row[np.searchsorted(originals, near)])
    return judged(
        photos, np.concatenate(score).astype(np.float64), np.concatenate(one), np.concatenate(other)
    )


def verified(photos: Collection, vlads: NDArray[np.float32]) -> tuple[Scores, float]:
    """Return the candidates with how much of them agrees, and the seconds of a comparison."""
    pairs = {}
    for near in find_candidates(vlads):
        one, other = sorted((near.one, near.other), key=lambda number: photos.kind[number] < 0)
        if photos.kind[other] < 0:  # copies of one photo need not be compared with each other
            paths = os.fsencode(photos.files[near.one]), os.fsencode(photos.files[near.other]), near.mirrored
            pairs[paths] = one, other
    began = perf_counter()
    best: dict[tuple[int, int], float] = {}
    with PhotoPairs(usable_cores(), lambda path, reason: print(path, reason)) as compare:
        for paths, agreement in compare.agreements(pairs):  # None: could not be compared
            best[pairs[paths]] = max(agreement or 0.0, best.get(pairs[paths], 0.0))
    one, other = np.array(list(best)).T
    seconds = (perf_counter() - began) / max(1, len(pairs))
    return judged(photos, np.array(list(best.values())), one, other), seconds


def measured(photos: Collection) -> tuple[dict[str, Scores], dict[str, float]]:
    """Return the scores of every method, and its CPU milliseconds per photo without decoding."""
    methods = {name: both_ways(function) for name, function in HASHES.items()} | {VLAD: photo_vlads}
    vectors: dict[str, list[NDArray[np.float32]]] = {name: [] for name in methods}
    seconds = dict.fromkeys(methods, 0.0)
    for file in photos.files:
        pixels = open_photo(file).pixels
        for name, method in methods.items():
            began = process_time()
            vectors[name].append(method(pixels))
            seconds[name] += process_time() - began
    floors = dict.fromkeys(HASHES, 0.5) | {VLAD: 0.2}
    scores = {name: compared_with_all(photos, np.stack(rows), floors[name]) for name, rows in vectors.items()}
    scores[OURS], comparing = verified(photos, np.stack(vectors[VLAD]))
    times = {name: 1000 * total / len(photos.files) for name, total in seconds.items()}
    return scores, times | {OURS: times[VLAD], "a pair": 1000 * comparing}


def both_ways(function: Callable[[Pixels], NDArray[np.float32]]) -> Callable[[Pixels], NDArray[np.float32]]:
    return lambda pixels: np.stack([function(pixels), function(np.ascontiguousarray(pixels[:, ::-1]))])


def quality(options: argparse.Namespace) -> None:
    results: dict[str, tuple[dict[str, Scores], dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for half in ("train", "test"):
            photos = of_lfw(options.lfw, half, options.planted, options.others, Path(folder))
            results[half] = measured(photos)
            print(f"{half}: {len(photos.files)} files", flush=True)
            if options.pairs:
                write_pairs(
                    photos, results[half][0][OURS], options.pairs.with_name(f"{half}-{options.pairs.name}")
                )
        elsewhere = [
            shipped_row("synthetic people", of_synthetic_people(20, Path(folder)), 20),
            shipped_row("no faces", without_faces(20, Path(folder)), 20),
        ]
    train, (test, times) = results["train"][0], results["test"]
    rows, kept = [], {}
    for name in test:
        cells = [name]
        for precision in PRECISIONS:
            threshold = train[name].threshold(precision)
            recall, reached = recall_of(test[name], threshold, options), test[name].precision(threshold)
            cells += [f"{threshold:.3f}", f"{recall:.3f}", f"{reached:.4f}"]
            kept[f"{name} at {precision}"] = [threshold, recall, reached]
        rows.append([*cells, f"{times[name]:.1f}"])
    strict = {
        name: test[name].recalls(train[name].threshold(PRECISIONS[-1]), options.planted) for name in test
    }
    kinds = [[kind, *(f"{strict[name][way]:.2f}" for name in test)] for way, kind in enumerate(ALTERATIONS)]
    shipped = [row_of("LFW, test half", test[OURS], options.planted), *elsewhere]
    heads = [
        f"{head} {p}" for p in PRECISIONS for head in ("threshold for", "recall at", "precision reached,")
    ]
    parts = [
        table(["method", *heads, "ms"], rows),
        table([f"recall at {PRECISIONS[-1]} by alteration", *test], kinds),
        table([f"with the shipped threshold, {AGREEMENT}", "copies", "found", "wrong pairs"], shipped),
        f"{options.planted} photos with {len(ALTERATIONS)} copies each among {options.others} of the most "
        f"photographed people, each half; ms of CPU per photo without decoding, and {times['a pair']:.0f} ms of wall "
        "time to compare two photos. Made by `python -m studies.duplicates quality` on "
        f"{machine('opencv-python-headless', 'numpy')}.",
    ]
    text = "\n\n".join(parts)
    finish(text, "duplicates quality", kept, options)


def shipped_row(name: str, photos: Collection, planted: int) -> list[str]:
    vlads = np.stack([photo_vlads(open_photo(file).pixels) for file in photos.files])
    return row_of(name, verified(photos, vlads)[0], planted)


def row_of(name: str, scores: Scores, planted: int) -> list[str]:
    recall, copies = float(np.mean(scores.recalls(AGREEMENT, planted))), planted * len(ALTERATIONS)
    return [name, f"{copies:,}", f"{recall:.3f}", str(scores.wrong(AGREEMENT))]


def recall_of(scores: Scores, threshold: float, options: argparse.Namespace) -> float:
    return float(np.mean(scores.recalls(threshold, options.planted)))


def write_pairs(photos: Collection, scores: Scores, file: Path) -> None:
    wrong = np.flatnonzero(scores.kind < 0)
    worst = wrong[np.argsort(-scores.score[wrong], kind="stable")][:200]
    rows = [
        (
            float(scores.score[i]),
            str(photos.files[scores.one[i]]),
            photos.names[photos.source[scores.one[i]]],
            photos.names[photos.source[scores.other[i]]],
        )
        for i in worst.tolist()
    ]
    file.write_text(json.dumps(rows, indent=0))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def finish(text: str, name: str, facts: object, options: argparse.Namespace) -> None:
    print(text)
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1))
    if options.page:
        write_section(options.page, name, text)


def scale(options: argparse.Namespace) -> None:
    """Time the search for candidates among VLADs drawn with the mean and covariance of LFW's."""
    rng = np.random.default_rng(0)
    names = names_of(options.lfw / "images", "train")[:: max(1, 6000 // 600)]
    real = np.stack([photo_vlads(open_photo(options.lfw / "images" / name).pixels) for name in names])
    flat = real.reshape(len(real), -1)
    copies = options.photos // 100
    mixed = rng.normal(size=(options.photos - copies, len(flat))).astype(np.float32) / len(flat) ** 0.5
    drawn = flat.mean(axis=0) + mixed @ (flat - flat.mean(axis=0))
    near = drawn[:copies] + rng.normal(size=(copies, drawn.shape[1])).astype(np.float32) * drawn.std() * 1.2
    vlads = np.concatenate([drawn, near]).reshape(options.photos, 2, -1).astype(np.float32)
    vlads /= np.linalg.norm(vlads, axis=2, keepdims=True)
    del mixed, drawn, near
    alike = np.einsum("nd,nd->n", vlads[:copies, 0], vlads[-copies:, 0])
    began, cpu = perf_counter(), process_time()
    found = {(near.one, near.other) for near in find_candidates(vlads)}
    seconds, cpu = perf_counter() - began, process_time() - cpu
    hits = sum((i, options.photos - copies + i) in found for i in range(copies))
    text = (
        f"{options.photos:,} VLADs, {copies:,} of them copies (similarity {np.quantile(alike, 0.1):.2f} to "
        f"{np.quantile(alike, 0.9):.2f}, the middle 80 %): {hits / copies:.1%} of the copies are candidates, "
        f"{len(found):,} pairs in all; {cpu:.0f} s of CPU, {seconds:.0f} s of wall time, peak memory "
        f"{peak_memory() / 1e9:.1f} GB. Made by `python -m studies.duplicates scale` on {machine('numpy')}."
    )
    facts = {
        "photos": options.photos,
        "found": hits / copies,
        "pairs": len(found),
        "cpu": cpu,
        "wall": seconds,
    }
    finish(text, "duplicates scale", facts, options)


def learn(options: argparse.Namespace) -> None:
    """Learn the shipped vocabulary from every third photo of the training half."""
    paths = [options.lfw / "images" / name for name in names_of(options.lfw / "images", "train")[::3]]
    patches = [dense_sift(small_grey(open_photo(path).pixels)).reshape(-1, DIM) for path in paths]
    write_vocabulary(learn_vocabulary(patches), LIBRARY / SHIPPED)
    print(f"{LIBRARY / SHIPPED}: learnt from {len(paths)} photos")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("job", choices=("learn", "quality", "scale"))
    parser.add_argument("--lfw", type=Path, default=LFW)
    parser.add_argument("--planted", type=int, default=200, help="photos that are copied, in each half")
    parser.add_argument("--others", type=int, default=1500, help="photos besides, in each half")
    parser.add_argument("--photos", type=int, default=100_000)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    {"learn": learn, "quality": quality, "scale": scale}[options.job](options)


if __name__ == "__main__":
    main()
