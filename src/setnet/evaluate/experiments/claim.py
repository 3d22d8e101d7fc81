"""The paper's claim at a small size: SetNet against its baselines, all trained from photos, on unseen people.

People of the training half of the split train everything; a hundred of them are held out of training and
serve to fit each method's (w, b). People of the other half are the test.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.errors import TrainingError
from setnet.evaluate.data.splits import half_of
from setnet.evaluate.methods.ranking_calibration import calibrated, calibrated_elements
from setnet.evaluate.methods.stress_measure import stress, stress_elements
from setnet.evaluate.worlds.stress_world import StressWorld, stress_world
from setnet.learn import (
    VARIANTS,
    Crops,
    FaceArray,
    NetworkAggregator,
    SetNetwork,
    Settings,
    Variant,
    aligned_crops,
    elements_of,
    learnt_p,
    load_backbone,
    new_backbone,
    pretrain,
    save_backbone,
    trained_variant,
    whiten,
)
from setnet.sets import Logistic

__all__ = ["ClaimResult", "ClaimRow", "run_claim"]

FACES = (2, 3, 4, 5)
HELD_OUT = 100
WHITENED = 2000  # faces that whitening is fitted on
# Worlds from large to small (people, sets); the first in which descriptor-per-element reaches EASY is used.
WORLDS = ((200, 2_000), (100, 1_000), (60, 500), (40, 300), (25, 150), (15, 60), (10, 40))
CALIBRATION = (100, 500)
GROUPS = 8  # a small world is repeated with other people: one group of fifteen would be a lottery
EASY = 60.0
UPPER_BOUND = "Descriptor-per-element"
_Described = tuple[torch.Tensor, NDArray[np.int64], StressWorld, list[StressWorld]]


@dataclass(frozen=True)
class ClaimRow:
    """One method: nDCG@10 and nDCG@30 in percent at 2 to 5 faces per set, and the (w, b) used.

    `error10` is the standard error of nDCG@10 over the test worlds.
    """

    name: str
    ndcg10: tuple[float, ...]
    ndcg30: tuple[float, ...]
    error10: tuple[float, ...]
    w: float
    b: float


@dataclass(frozen=True)
class ClaimResult:
    """The whole comparison and what it was made on."""

    rows: tuple[ClaimRow, ...]
    people: int
    sets: int
    worlds: int
    trained_people: int
    trained_faces: int
    learnt_p: dict[str, list[float]]
    seconds: float
    settings: Settings


@dataclass(frozen=True, eq=False)
class _Data:
    """The faces of the three groups of people."""

    train: FaceArray
    calibrate: FaceArray
    test: FaceArray


def run_claim(
    data: Path, out: Path, settings: Settings, worlds: Sequence[tuple[int, int]] = WORLDS
) -> ClaimResult:
    """Pre-train, train every variant, and judge all; what is already in `out` is not done again.

    `worlds` are sizes of the test (people, sets) to try, the largest first.
    """
    done = _Done(out / "rows.json", settings)
    backbone_file = out / "backbone.safetensors"
    parts = _divide(aligned_crops(data, settings.augment.short_side, out / "crops.npz"), settings)
    if not backbone_file.is_file():
        torch.manual_seed(settings.seed)
        backbone = new_backbone(settings)
        report = pretrain(backbone, parts.train, settings, out / "pretrain")
        save_backbone(backbone_file, backbone, settings, {"steps": report.steps})
    load_backbone(backbone_file, settings)  # other settings than the stored backbone's show here
    chosen: tuple[StressWorld, ...] = ()
    known: _Described | None = None
    p: dict[str, list[float]] = {}
    # Those without set training first: Baseline's descriptors decide the size of the test.
    for variant in sorted(VARIANTS, key=lambda v: v.size is not None):
        network = trained_variant(variant, backbone_file, parts.train, settings, out / "variants")
        if learnt_p(network):
            p[variant.name] = learnt_p(network)
        if chosen and all(name in done for name, _ in _forms(variant)):
            continue
        if not chosen:
            chosen = _sized_worlds(parts, network, [done.size] if done.size else worlds, done)
        if variant.size is not None or known is None:  # those without set training share their elements
            known = _described_all(network, parts, chosen, settings.seed)
        train, labels, ours, theirs = known
        for name, place in _forms(variant):
            if name not in done:
                _say(f"judging {name}")
                _whitened(network, place, train, labels, variant)
                done.add(_judged(NetworkAggregator(network, name), ours, theirs))
    people = sum(len(np.unique(world.people)) for world in chosen[1:])
    sizes = (len(chosen[1].faces), len(chosen) - 1)
    trained = (parts.train.people, len(parts.train.faces))
    return ClaimResult(done.rows, people, *sizes, *trained, p, done.seconds, settings)


def _divide(crops: Crops, settings: Settings) -> _Data:
    """Return training people, held-out people of the same half, and the people of the other half."""
    spec = new_backbone(settings).spec
    assert spec is not None
    train = half_of(crops.labels, "train")
    names, owner, photos = np.unique(crops.labels, return_inverse=True, return_counts=True)
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
    people = [str(name) for name in names]
    return _Data(
        *(
            FaceArray(
                crops.pixels[rows], owner[rows].astype(np.int64), people, spec, settings.augment, "crops"
            )
            for rows in groups
        )
    )


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
    parts: _Data, network: SetNetwork, sizes: Sequence[tuple[int, int]], done: _Done
) -> tuple[StressWorld, ...]:
    """Return the calibration world and test worlds of the largest size that is not too hard."""
    ours = _described(network, parts.calibrate, [_world(parts.calibrate, *CALIBRATION, 0)])[0]
    logistic = calibrated_elements(ours, faces=FACES)
    for people, sets in sizes:
        wanted = [_world(parts.test, people, sets, group) for group in range(_groups(parts.test, people))]
        worlds = _described(network, parts.test, wanted)
        ten = np.array([stress_elements(w, faces=FACES, logistic=logistic).means for w in worlds])
        _say(f"{len(worlds)} x {people} people, {sets} sets: descriptor-per-element {ten.mean(0).round(1)}")
        if (people, sets) == sizes[-1] or (ten.mean(0) >= EASY).all():
            deep = [stress_elements(w, faces=FACES, depth=30, logistic=logistic).means for w in worlds]
            done.size = (people, sets)
            done.add(_row(UPPER_BOUND, ten, np.array(deep), logistic))
            return ours, *worlds
    raise AssertionError("the last world is always taken")


def _several(source: FaceArray) -> NDArray[np.int64]:
    """Return the people with three photos or more, in a fixed shuffle."""
    numbers, photos = np.unique(source.labels, return_counts=True)
    return np.random.default_rng(1).permutation(numbers[photos >= 3])


def _groups(source: FaceArray, people: int) -> int:
    return int(np.clip(len(_several(source)) // people, 1, GROUPS))


def _world(source: FaceArray, people: int, sets: int, group: int) -> StressWorld:
    """Return the world of the `group`-th group of `people` people; its descriptors are still to come."""
    owner = source.labels
    numbers, photos = np.unique(owner, return_counts=True)
    known = np.isin(owner, _several(source)[group * people : (group + 1) * people])
    single = np.isin(owner, numbers[photos == 1])
    labels = np.where(known, owner.astype(np.str_), "")
    # Others of several photos would be neither labelled nor strangers: they are left out.
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


def _whitened(
    network: SetNetwork,
    place: str | None,
    elements: torch.Tensor,
    labels: NDArray[np.int64],
    variant: Variant,
) -> None:
    network.before = network.after = None
    if place is not None:
        whiten(network, elements, labels, (variant.size or 2,), place)


def _judged(aggregator: NetworkAggregator, ours: StressWorld, theirs: Sequence[StressWorld]) -> ClaimRow:
    logistic = calibrated(aggregator, ours, faces=FACES)
    ten, thirty = (
        np.array([stress(aggregator, w, faces=FACES, depth=depth, logistic=logistic).means for w in theirs])
        for depth in (10, 30)
    )
    return _row(aggregator.name, ten, thirty, logistic)


def _row(name: str, ten: NDArray[np.float64], thirty: NDArray[np.float64], logistic: Logistic) -> ClaimRow:
    """Return the means over worlds (rows of `ten` and `thirty`) and their standard errors."""
    errors = ten.std(axis=0, ddof=min(1, len(ten) - 1)) / np.sqrt(len(ten))
    first, deep, spread = (tuple(values.tolist()) for values in (ten.mean(0), thirty.mean(0), errors))
    return ClaimRow(name, first, deep, spread, logistic.w, logistic.b)


class _Done:
    """The rows judged so far, in a file, so that a run goes on where it stopped."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path, self._settings = path, settings
        self._rows: dict[str, ClaimRow] = {}
        self._before, self._started = 0.0, time.monotonic()
        self.size: tuple[int, int] | None = None
        if path.is_file():
            stored = json.loads(path.read_text(encoding="utf-8"))
            if Settings.from_dict(stored["settings"]) != settings:
                raise TrainingError(f"{path} was made with other settings: use another folder, or remove it")
            self._before = stored["seconds"]
            self.size = stored["size"] and (stored["size"][0], stored["size"][1])
            for row in stored["rows"]:
                values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
                self._rows[row["name"]] = ClaimRow(**values)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    @property
    def rows(self) -> tuple[ClaimRow, ...]:
        names = [UPPER_BOUND, *(name for variant in VARIANTS for name, _ in _forms(variant))]
        return tuple(self._rows[name] for name in names if name in self._rows)

    def add(self, row: ClaimRow) -> None:
        self._rows[row.name] = row
        self._write()

    @property
    def seconds(self) -> float:
        """Time spent, earlier runs included (up to their last row)."""
        return self._before + time.monotonic() - self._started

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".tmp")
        rows = [asdict(row) for row in self._rows.values()]
        facts = {
            "settings": self._settings.as_dict(),
            "seconds": self.seconds,
            "size": self.size,
            "rows": rows,
        }
        text = json.dumps(facts, indent=1)
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self.path)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
