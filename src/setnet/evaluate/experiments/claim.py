"""The paper's claim at a small size: SetNet against its baselines, all trained from photos, on unseen people.

People of the training half of the split train everything; a hundred of them are held out of training and
serve to fit each method's (w, b). People of the other half are the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.evaluate.data.splits import half_of
from setnet.evaluate.methods.ranking_calibration import calibrated, calibrated_elements
from setnet.evaluate.methods.stress_measure import FACES, StressResult, measured_elements, measured_sets
from setnet.evaluate.report.record import Record, Row, Run
from setnet.evaluate.worlds.stress_world import StressWorld, stress_world
from setnet.learn import (
    VARIANTS,
    Crops,
    FaceArray,
    NetworkAggregator,
    SetNetwork,
    TrainingSettings,
    Variant,
    aligned_crops,
    elements_of,
    learned_exponents,
    load_backbone,
    new_backbone,
    pretrain,
    save_backbone,
    trained_variant,
    whiten,
)

HELD_OUT = 100
WHITENED = 2000  # faces that whitening is fitted on
# Worlds from large to small (people, sets); the first in which descriptor-per-element reaches EASY is used.
WORLDS = ((200, 2_000), (100, 1_000), (60, 500), (40, 300), (25, 150), (15, 60), (10, 40))
CALIBRATION = (100, 500)
GROUPS = 8  # a small world is repeated with other people: one group of fifteen would decide by chance
EASY = 60.0
UPPER_BOUND = "Descriptor-per-element"
_Described = tuple[torch.Tensor, NDArray[np.int64], StressWorld, list[StressWorld]]


@dataclass(frozen=True, eq=False)
class _Data:
    """The faces of the three groups of people."""

    train: FaceArray
    calibrate: FaceArray
    test: FaceArray


def run_claim(
    data: Path,
    out: Path,
    settings: TrainingSettings,
    worlds: Sequence[tuple[int, int]] = WORLDS,
    say: Callable[[str], None] = lambda text: None,
) -> Record:
    """Pre-train, train every variant, and evaluate all; what is already in `out` is not done again.

    `worlds` are sizes of the test (people, sets) to try, the largest first. A row has, for each measure, its
    mean in every test world.
    """
    run = Run("claim", settings.as_dict(), out / "claim.json")
    backbone_file = out / "backbone.safetensors"
    parts = _divide(aligned_crops(data, settings.augment.short_side, out / "crops.npz"), settings)
    if not backbone_file.is_file():
        torch.manual_seed(settings.seed)
        backbone = new_backbone(settings)
        report = pretrain(backbone, parts.train, settings, out / "pretrain")
        save_backbone(backbone_file, backbone, settings, {"steps": report.steps})
    load_backbone(backbone_file, settings)  # refuses a stored backbone of another shape
    chosen: tuple[StressWorld, ...] = ()
    known: _Described | None = None
    exponents: dict[str, list[float]] = {}
    # Those without set training first: Baseline's descriptors decide the size of the test.
    for variant in sorted(VARIANTS, key=lambda v: v.size is not None):
        network = trained_variant(variant, backbone_file, parts.train, settings, out / "variants")
        if learned_exponents(network):
            exponents[variant.name] = learned_exponents(network)
        if chosen and all(run.has(name) for name, _ in _forms(variant)):
            continue
        if not chosen:
            size = run.extra.get("size")
            chosen = _sized_worlds(parts, network, [tuple(size)] if size else worlds, run, say)
        if variant.size is not None or known is None:  # those without set training share their elements
            known = _described_all(network, parts, chosen, settings.seed)
        train, labels, ours, theirs = known
        for name, place in _forms(variant):
            if not run.has(name):
                say(f"evaluating {name}")
                network.before = network.after = None
                if place is not None:
                    whiten(network, train, labels, (variant.size or 2,), place)
                run.add(_evaluated(NetworkAggregator(network, name), ours, theirs))
    names = [UPPER_BOUND, *(name for variant in VARIANTS for name, _ in _forms(variant))]
    run.rows = {name: run.rows[name] for name in names}
    run.note(
        people=sum(len(np.unique(world.people)) for world in chosen[1:]),
        worlds=len(chosen) - 1,
        trained_people=parts.train.people,
        trained_faces=len(parts.train.faces),
        exponents=exponents,
    )
    return run.record()


def _divide(crops: Crops, settings: TrainingSettings) -> _Data:
    """Return training people, held-out people of the same half, and the people of the other half."""
    spec = new_backbone(settings).spec
    assert spec is not None
    train = half_of(crops.labels, "train")
    _, owner, photos = np.unique(crops.labels, return_inverse=True, return_counts=True)
    ours = np.unique(owner[train])
    several = ours[photos[ours] >= 3]
    held = np.random.default_rng(settings.seed).choice(
        several, min(HELD_OUT, len(several) // 4), replace=False
    )
    single = photos[owner] == 1
    groups = [
        train & ~single & ~np.isin(owner, held),
        train & (single | np.isin(owner, held)),
        half_of(crops.labels, "test"),
    ]
    faces = (
        FaceArray(crops.pixels[rows], owner[rows].astype(np.int64), spec, settings.augment, "crops")
        for rows in groups
    )
    return _Data(*faces)


def _described_all(network: SetNetwork, parts: _Data, worlds: Sequence[StressWorld], seed: int) -> _Described:
    """Return a sample of training elements with their labels, the calibration world and the test worlds."""
    sample = parts.train.sample(np.random.default_rng(seed), WHITENED)
    train = elements_of(network, parts.train, sample.picks)
    ours = _described(network, parts.calibrate, worlds[:1])[0]
    return train, sample.labels, ours, _described(network, parts.test, worlds[1:])


def _described(network: SetNetwork, source: FaceArray, worlds: Sequence[StressWorld]) -> list[StressWorld]:
    """Return the worlds with this network's elements of the faces they use (zeros for the others)."""
    rows = np.unique(np.concatenate([np.append(w.faces.ravel(), w.examples.ravel()) for w in worlds]))
    some = elements_of(network, source, rows).numpy()
    out = np.zeros((len(source.labels), some.shape[1]), dtype=np.float32)
    out[rows] = some
    return [replace(world, descriptors=out) for world in worlds]


def _sized_worlds(
    parts: _Data,
    network: SetNetwork,
    sizes: Sequence[tuple[int, int]],
    run: Run,
    say: Callable[[str], None],
) -> tuple[StressWorld, ...]:
    """Return the calibration world and test worlds of the largest size that is not too hard."""
    ours = _described(network, parts.calibrate, [_world(parts.calibrate, *CALIBRATION, 0)])[0]
    logistic = calibrated_elements(ours)
    for people, sets in sizes:
        groups = np.clip(len(_several(parts.test)) // people, 1, GROUPS)
        wanted = [_world(parts.test, people, sets, group) for group in range(groups)]
        worlds = _described(network, parts.test, wanted)
        ten = [measured_elements(w, logistic=logistic) for w in worlds]
        means = np.mean([result.means for result in ten], axis=0)
        say(f"{len(worlds)} x {people} people, {sets} sets: descriptor-per-element {means.round(1)}")
        if (people, sets) == sizes[-1] or (means >= EASY).all():
            thirty = [measured_elements(w, depth=30, logistic=logistic) for w in worlds]
            run.note(size=[people, sets])
            run.add(_row(UPPER_BOUND, ten, thirty, bound=True))
            return ours, *worlds
    raise AssertionError("the last world is always taken")


def _several(source: FaceArray) -> NDArray[np.int64]:
    """Return the people with three photos or more, in a fixed shuffle."""
    numbers, photos = np.unique(source.labels, return_counts=True)
    return np.random.default_rng(1).permutation(numbers[photos >= 3])


def _world(source: FaceArray, people: int, sets: int, group: int) -> StressWorld:
    """Return the world of the `group`-th group of `people` people; its descriptors are still to come."""
    owner = source.labels
    numbers, photos = np.unique(owner, return_counts=True)
    known = np.isin(owner, _several(source)[group * people : (group + 1) * people])
    single = np.isin(owner, numbers[photos == 1])
    labels = np.where(known, owner.astype(np.str_), "")
    # Others of several photos would be neither labelled nor distractors: they are left out.
    keep = np.flatnonzero(known | single)
    world = stress_world(
        np.zeros((len(keep), 1), np.float32), labels[keep], sets=sets, queries=100, repeats=10, seed=group
    )
    return replace(world, faces=keep[world.faces], examples=keep[world.examples])


def _forms(variant: Variant) -> Iterator[tuple[str, str | None]]:
    """Yield a variant's rows: as it is, whitened, and for averages also whitened after aggregation."""
    yield variant.name, None
    if variant.aggregator == "average":
        yield f"{variant.name} + W", "before"
        yield f"{variant.name} + W (W after agg.)", "after"
    elif variant.aggregator not in ("memory", "muvera"):
        yield f"{variant.name} + W", "after"


def _evaluated(aggregator: NetworkAggregator, ours: StressWorld, theirs: Sequence[StressWorld]) -> Row:
    logistic = calibrated(aggregator, ours)
    ten, thirty = (
        [measured_sets(aggregator, w, depth=depth, logistic=logistic) for w in theirs] for depth in (10, 30)
    )
    return _row(aggregator.name, ten, thirty)


def _row(name: str, ten: list[StressResult], thirty: list[StressResult], bound: bool = False) -> Row:
    values = {
        f"ndcg{results[0].depth}@{count}": [float(result.means[place]) for result in results]
        for results in (ten, thirty)
        for place, count in enumerate(FACES)
    }
    facts = {"bytes": ten[0].bytes_per_item, "w": ten[0].logistic.w, "b": ten[0].logistic.b}
    return Row(name, values, facts, bound)
