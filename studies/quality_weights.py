"""Does the length of a descriptor before normalisation tell how far to trust a face? Faces weighted by it, and not.

    python -m studies.degrade LFW/images coarse/ --kind coarse      # and shaken/
    python -m studies.quality_weights LFW/images coarse/ shaken/ --work DIR --write FILE.md

A face's similarity, or its share in a set vector, is multiplied by (its length / the median length) ** power. The
power is chosen on people of LFW's training half, from the same grid for each way of keeping sets; (w, b) is
calibrated there again for each power, and the test half is looked at once. Descriptors are kept in DIR.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from benchmarks.support.performance_page import machine, write_section
from setnet.evaluate.measures import people_draws
from setnet.evaluate.people import half_of
from setnet.evaluate.ranking_calibration import best_logistic
from setnet.evaluate.representations import coded_elements, element_similarities, vector_similarities
from setnet.evaluate.stress_trial import (
    FACES,
    PairSimilarities,
    StressTest,
    stress_world,
)
from setnet.faces import load_descriptor
from setnet.heads import Logistic, SetNet, codec, unit
from setnet.train.faces import cut_face, face_places, identity_photos, read_photo

Floats = NDArray[np.float32]
POWERS = (-0.5, 0.0, 0.5, 1.0, 2.0)
SETS, REPEATS = 32_000, 5
WAYS = ("every face, floats", "every face, 1 bit", "sface-128", "sface-512")


@dataclass(frozen=True, eq=False)
class Faces:
    """Descriptors before normalisation, and whose they are."""

    kind: str
    rows: Floats
    labels: NDArray[np.str_]

    def half(self, half: str) -> Faces:
        chosen = half_of(self.labels, half)
        return Faces(self.kind, self.rows[chosen], self.labels[chosen])

    def test(self, seed: int) -> StressTest:
        return StressTest(stress_world(self.rows, self.labels, sets=SETS, repeats=REPEATS, seed=seed))


def described(photos: Path, work: Path) -> Faces:
    """Return the descriptors of the photos' faces as the network gives them, before normalisation."""
    stored = work / f"{photos.name}.npz"
    if not stored.is_file():
        folder = work / photos.name
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = load_descriptor("sface")
        paths = [path for own in identity_photos(photos) for path in own]
        faces = zip(paths, face_places(paths, folder / "places.bin"), strict=True)
        size = descriptor.size
        crops = np.stack([cut_face(read_photo(path), place, size, "five-point") for path, place in faces])
        parts = [descriptor._run(descriptor._prepare(crops[at : at + 8])) for at in range(0, len(crops), 8)]
        np.savez(stored, rows=np.concatenate(parts), labels=np.array([path.parent.name for path in paths]))
    with np.load(stored, allow_pickle=False) as file:
        return Faces(photos.name, file["rows"], file["labels"])


class Weighted:
    """A way of keeping sets in which a face counts by its length to some power, over the median length."""

    def __init__(self, way: str, power: float, median: float) -> None:
        self.way, self.power, self.median = way, power, median

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        rows = test.world.descriptors
        weights = (np.linalg.norm(rows, axis=1, keepdims=True) / self.median) ** np.float32(self.power)
        if self.way.startswith("every face"):
            code = coded_elements(1) if self.way.endswith("1 bit") else unit
            vectors = unit(rows)
            return element_similarities(vectors[test.examples], code(vectors) * weights, test)
        return self._pool(test, SetNet.load(self.way), weights)

    def _pool(self, test: StressTest, net: SetNet, weights: Floats) -> Iterator[PairSimilarities]:
        rows = unit(test.world.descriptors)
        added = net.contributions(rows)
        assert added is not None
        added *= weights
        queries = net.describe(rows[test.examples])
        for size in FACES:
            codes = [
                codec.encode(unit(added[part].sum(axis=1)), net.bits)
                for part in np.array_split(test.world.faces[:, :size], 32)
            ]
            yield vector_similarities(queries, codec.decode(np.concatenate(codes), net.dim, net.bits))


def measured(way: Weighted, test: StressTest, logistic: Logistic) -> NDArray[np.float64]:
    """Return nDCG@10, (faces, repeats, queries)."""
    return np.array([test.ndcg(one, logistic)[0] for one in way.similarities(test)])


def signal(faces: Faces) -> str:
    """Return how far lengths go with similarities, by rank correlation."""
    length, vectors = np.linalg.norm(faces.rows, axis=1), unit(faces.rows)
    _, owner, photos = np.unique(faces.labels, return_inverse=True, return_counts=True)
    sums = np.zeros((len(photos), vectors.shape[1]), np.float32)
    np.add.at(sums, owner, vectors)
    several = photos[owner] > 1
    others = sums[owner] - vectors
    genuine = np.einsum("nd,nd->n", vectors, others) / np.maximum(photos[owner] - 1, 1)
    non_matches = vectors @ vectors[np.random.default_rng(0).choice(len(vectors), 500, replace=False)].T
    with_genuine = spearmanr(length[several], genuine[several]).statistic
    with_spread = spearmanr(length, np.sort(non_matches, axis=1)[:, -5]).statistic
    spread = length.std() / length.mean()
    return f"| {faces.kind} | {spread:.2f} | {with_genuine:+.2f} | {with_spread:+.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("photos", nargs="+", type=Path, help="LFW's photos, then degraded copies")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    kinds = [described(photos, given.work) for photos in given.photos]
    text = "\n\n".join([signals(kinds), table(kinds), origin()])
    print(text)
    if given.write:
        write_section(given.write, "quality weights", text)


def signals(kinds: Sequence[Faces]) -> str:
    head = "| photos | spread of lengths | with genuine similarity | with the nearest non-matches |\n|---|---|---|---|"
    return "\n".join([head, *(signal(kind.half("train")) for kind in kinds)])


def table(kinds: Sequence[Faces]) -> str:
    train, test = [kind.half("train") for kind in kinds], [kind.half("test") for kind in kinds]
    median = float(np.median(np.linalg.norm(train[0].rows, axis=1)))
    fitted, judged = train[0].test(0), [kind.test(1) for kind in train]
    final = [kind.test(2) for kind in test]
    lines = ["| way | power | photos | unweighted | weighted less unweighted |", "|---|---|---|---|---|"]
    for way in WAYS:
        logistics = {p: best_logistic(Weighted(way, p, median), fitted) for p in POWERS}
        found = {
            p: float(np.mean([measured(Weighted(way, p, median), one, logistics[p]) for one in judged]))
            for p in POWERS
        }
        print(way, {p: round(value, 2) for p, value in found.items()}, flush=True)
        power = max((p for p in POWERS if p), key=lambda p: found[p])
        for kind, one in zip(test, final, strict=True):
            plain, weighted = (
                measured(Weighted(way, p, median), one, logistics[p]).mean(axis=1) for p in (0.0, power)
            )
            gains = [
                f"{(b - a).mean():+.1f} ± {people_draws([b - a], [one.world.queries]).std(ddof=1):.1f}"
                for a, b in zip(plain, weighted, strict=True)
            ]
            shown = " / ".join(f"{a.mean():.1f}" for a in plain)
            lines.append(f"| {way} | {power:g} | {kind.kind} | {shown} | {' / '.join(gains)} |")
    return "\n".join(lines)


def origin() -> str:
    return f"Measured by `python -m studies.quality_weights {' '.join(sys.argv[1:])}` on {machine()}."


if __name__ == "__main__":
    main()
