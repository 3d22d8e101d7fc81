"""Unknown faces grouped by person: ours beside simpler ways, on people that nothing was chosen on."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.data.labelled_people import LabelledPeople, divided, read_people
from setnet.evaluate.experiments.running import OnProgress, running
from setnet.evaluate.group_measures import GroupQuality, group_quality
from setnet.evaluate.methods.grouping_peers import PEERS, Peer, hdbscan
from setnet.evaluate.methods.library_shapes import shapes
from setnet.evaluate.report.record import Record, Row, Run, fingerprinted
from setnet.library import group_descriptors, refuse_two_models

THRESHOLDS = np.arange(0.36, 0.641, 0.02)
OURS = "setnet people discover"
SHAPES = "libraries of other shapes"  # table of the rows that are not methods


def grouping(
    descriptors: Path,
    *,
    others: Sequence[Path] | None = None,
    repeats: int = 5,
    seed: int = 0,
    json: Path | None = None,
    progress: OnProgress | None = None,
) -> Record:
    """Group the faces of people that nothing was chosen on, and compare with ground truth.

    Parameters
    ----------
    descriptors
        A descriptor file with labels. Thresholds of the other methods are the best on one half of its people,
        all measured on the other half; ours takes nothing from either.
    others
        Further descriptor files, such as of degraded copies: the half with the same names is measured with
        everything unchanged.
    repeats, seed
        How often libraries of other shapes are drawn from the people of each file, and where that begins.
    json, progress
        As in `stress`.
    """
    files = [descriptors, *(others or ())]
    refuse_two_models(files)
    settings = {
        "descriptors": [fingerprinted(file) for file in files],
        "repeats": repeats,
        "seed": seed,
    }
    with running("grouping", settings, json, progress, len(PEERS) + 1 + _has_hdbscan() + len(files)) as run:
        halves = divided(read_people(descriptors), descriptors.name)
        tested = [_known(halves.test)]
        tested += [_known(divided(read_people(file), file.name).test) for file in files[1:]]
        run.note(
            world=halves.name,
            sources=[file.stem for file in files],
            faces=[len(people.labels) for people in tested],
            people=[len(people.groups()) for people in tested],
        )
        for name, peer in PEERS.items():
            if not run.has(name):
                run.say(f"{name}: choosing a threshold")
                best = _best_threshold(peer, _known(halves.train))
                _measure(run, name, peer, best, tested)
        if _has_hdbscan() and not run.has("HDBSCAN"):
            _measure(run, "HDBSCAN", hdbscan, None, tested)
        if not run.has(OURS):
            _measure(run, OURS, lambda faces, _: group_descriptors(faces), None, tested)
        for number, people in enumerate(tested):
            _shapes(run, number, people, range(seed, seed + repeats))
    return run.record()


def _has_hdbscan() -> bool:
    return find_spec("sklearn") is not None


def _known(people: LabelledPeople) -> LabelledPeople:
    rows = people.labels != ""
    return LabelledPeople(people.descriptors[rows], people.labels[rows])


def _best_threshold(peer: Peer, people: LabelledPeople) -> float:
    found = [group_quality(peer(people.descriptors, t), people.labels).f1 for t in THRESHOLDS.tolist()]
    return round(float(THRESHOLDS[int(np.argmax(found))]), 2)


def _measure(
    run: Run, name: str, peer: Peer, threshold: float | None, tested: Sequence[LabelledPeople]
) -> None:
    run.say(name)
    values: dict[str, list[float]] = {}
    began = process_time()
    for number, people in enumerate(tested):
        groups: NDArray[np.int64] = peer(people.descriptors, threshold or 0.0)
        for measure, value in _measures(group_quality(groups, people.labels)).items():
            values[f"{measure} {number}"] = [value]
    seconds = (process_time() - began) / sum(len(people.labels) for people in tested) * 10_000
    run.add(Row(name, values, {"threshold": threshold, "seconds": round(seconds, 2)}))


def _shapes(run: Run, number: int, people: LabelledPeople, seeds: Sequence[int]) -> None:
    source = run.extra["sources"][number]
    run.say(f"{source}: {SHAPES}")
    values: dict[str, dict[str, list[float]]] = {}
    for seed in seeds:
        for name, shape in shapes(people, seed).items():
            if run.has(f"{source}: {name}"):
                continue
            groups = group_descriptors(shape.people.descriptors, photos=shape.photos)
            found = _measures(group_quality(groups, shape.people.labels))
            found["faces"], found["people"] = len(groups), len(shape.people.groups())
            for measure, value in found.items():
                values.setdefault(name, {}).setdefault(measure, []).append(value)
    for name, measured in values.items():
        run.add(Row(f"{source}: {name}", measured, {"table": SHAPES}))


def _measures(quality: GroupQuality) -> dict[str, float]:
    parts = {
        "precision": quality.precision,
        "recall": quality.recall,
        "f1": quality.f1,
        "found": quality.found,
    }
    return {measure: 100 * value for measure, value in parts.items()}
