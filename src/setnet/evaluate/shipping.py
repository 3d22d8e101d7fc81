"""Makes, calibrates and judges the heads that come with the package, and writes their card.

``python -m setnet.evaluate.shipping LFW.npz [NAME ...]`` trains and calibrates on the training half of LFW
only, judges once on the test half, and writes ``sets/shipped/NAME.safetensors`` and ``docs/heads.md``.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.splits import half_of
from setnet.evaluate.stress import StressResult, calibrated, gap_closed, stress, stress_elements
from setnet.evaluate.stress_world import StressWorld, stress_world
from setnet.sets import Mean, SetNet
from setnet.sets.aggregator import Aggregator
from setnet.sets.head import Head
from setnet.sets.logistic import Logistic
from setnet.sets.shipped import path_of, shipped_names

__all__ = ["judge", "make"]

CALIBRATION_SETS = 16_000


def make(name: str, descriptors: NDArray[np.float32], labels: NDArray[np.str_]) -> Head:
    """Train a shipped head anew on labelled descriptors of training people and calibrate its (w, b)."""
    from setnet.learn.heads import RECIPES, train_head

    head = train_head(RECIPES[name], descriptors, labels, report=print)
    world = stress_world(descriptors, labels, sets=CALIBRATION_SETS, repeats=3, seed=1)
    return head.with_logistic(calibrated(SetNet(head), world))


def judge(
    methods: list[Aggregator],
    train: tuple[NDArray[np.float32], NDArray[np.str_]],
    test: tuple[NDArray[np.float32], NDArray[np.str_]],
    seed: int = 0,
    sets: int = 64_000,
) -> list[StressResult]:
    """Return the stress test on ``test`` people: mean, descriptor-per-element, then the methods.

    Mean and descriptor-per-element are calibrated on the training people like every head.
    """
    training = stress_world(*train, sets=CALIBRATION_SETS, repeats=3, seed=1)
    world = stress_world(*test, sets=sets, seed=seed)
    mean = Mean(world.descriptors.shape[1])
    elements = stress_elements(world, logistic=_element_logistic(training))
    results = [stress(mean, world, logistic=calibrated(mean, training)), elements]
    return results + [stress(method, world) for method in methods]


def _element_logistic(world: StressWorld) -> Logistic:
    grid = [Logistic(w, -w * t) for w in (10.0, 15.0, 20.0, 30.0) for t in (0.35, 0.4, 0.45, 0.5)]
    return max(grid, key=lambda candidate: float(stress_elements(world, logistic=candidate).means.mean()))


def table(results: list[StressResult]) -> str:
    """Return the results as a Markdown table with the share of the gap closed."""
    mean, elements, *_ = results
    faces = mean.faces
    lines = [
        "| method | bytes | " + " | ".join(f"{f} faces" for f in faces) + " | gap closed, % |",
        "|---|---|" + "---|" * (len(faces) + 1),
    ]
    for result in results:
        cells = [f"{m:.2f} ± {e:.2f}" for m, e in zip(result.means, result.errors, strict=True)]
        closed = " / ".join(f"{g:.0f}" for g in gap_closed(result, mean, elements))
        lines.append(f"| {result.method} | {result.bytes_per_item} | " + " | ".join(cells) + f" | {closed} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("descriptors", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--judge-only", action="store_true", help="do not train; judge the heads as shipped")
    parser.add_argument("--sets", type=int, default=64_000)
    options = parser.parse_args()
    with np.load(options.descriptors) as file:
        rows, labels = file["descriptors"].astype(np.float32), file["labels"]
    train, test = ((rows[half], labels[half]) for half in (half_of(labels, "train"), half_of(labels, "test")))
    if not options.judge_only:
        from setnet.learn.heads import RECIPES

        for name in options.names or list(RECIPES):
            make(name, *train).save(path_of(name))
    nets: list[Aggregator] = [SetNet.load(name) for name in options.names or shipped_names()]
    results = judge(nets, train, test, sets=options.sets)
    print(table(results))
    for result in results[2:]:
        if result.method in shipped_names():
            _record(result, results)


def _record(result: StressResult, results: list[StressResult]) -> None:
    """Write a head's figures into its file, so that they travel with it."""
    head = Head.load(path_of(result.method))
    figures = {
        "ndcg@10": [round(float(m), 2) for m in result.means],
        "gap_closed_percent": [round(float(g), 1) for g in gap_closed(result, results[0], results[1])],
        "faces": list(result.faces),
    }
    replace(head, about={**head.about, "stress_lfw_test_half": figures}).save(path_of(result.method))


if __name__ == "__main__":
    _main()
