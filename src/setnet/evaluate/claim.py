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

from setnet.evaluate.splits import half_of
from setnet.evaluate.stress import calibrated, stress, stress_elements
from setnet.evaluate.stress_world import StressWorld, stress_world
from setnet.learn.adapter import NetworkAggregator
from setnet.learn.crops import Crops, aligned_crops
from setnet.learn.face_source import FaceArray
from setnet.learn.model_file import load_backbone, new_backbone, save_backbone
from setnet.learn.network import SetNetwork
from setnet.learn.pretrain import pretrain
from setnet.learn.set_training import elements_of
from setnet.learn.settings import Settings
from setnet.learn.stages import whiten
from setnet.learn.variants import VARIANTS, Variant, learnt_p, trained_variant
from setnet.sets.logistic import Logistic

__all__ = ["ClaimResult", "ClaimRow", "run_claim"]

FACES = (2, 3, 4, 5)
HELD_OUT = 100
# Worlds from large to small (people, sets); the first in which descriptor-per-element reaches EASY is used.
WORLDS = (
    (200, 4_000),
    (100, 2_000),
    (60, 1_000),
    (40, 600),
    (25, 300),
    (15, 150),
)
EASY = 60.0
UPPER_BOUND = "Descriptor-per-element"


@dataclass(frozen=True)
class ClaimRow:
    """One method: nDCG@10 and nDCG@30 in percent at 2 to 5 faces per set, and the (w, b) used."""

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
    started = time.monotonic()
    backbone_file = out / "backbone.safetensors"
    parts = _divide(aligned_crops(data, settings.augment.short_side, out / "crops.npz"), settings)
    if not backbone_file.is_file():
        torch.manual_seed(settings.seed)
        backbone = new_backbone(settings)
        report = pretrain(backbone, parts.train, settings, out / "pretrain")
        save_backbone(backbone_file, backbone, settings, {"steps": report.steps})
    load_backbone(backbone_file, settings)  # other settings than the stored backbone's show here
    done = _Done(out / "rows.json")
    chosen: tuple[StressWorld, StressWorld] | None = None
    p: dict[str, list[float]] = {}
    for variant in VARIANTS:
        network = trained_variant(variant, backbone_file, parts.train, settings, out / "variants")
        if learnt_p(network):
            p[variant.name] = learnt_p(network)
        if chosen is not None and all(name in done for name, _ in _forms(variant)):
            continue
        if chosen is None:  # Baseline comes first: its descriptors decide the size of the test
            chosen = _sized_worlds(parts, network, worlds, done)
        train = _elements(network, parts.train)
        judged = [
            replace(world, descriptors=_elements(network, source, world))
            for world, source in zip(chosen, (parts.calibrate, parts.test), strict=True)
        ]
        for name, place in _forms(variant):
            if name not in done:
                _say(f"judging {name}")
                _whitened(network, place, train, parts.train.labels, variant)
                done.add(_judged(NetworkAggregator(network, name), judged[0], judged[1]))
    assert chosen is not None
    seconds = done.spent(time.monotonic() - started)
    world = chosen[1]
    people = len(np.unique(world.people))
    return ClaimResult(
        done.rows, people, len(world.faces), parts.train.people, len(parts.train.faces), p, seconds, settings
    )


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


def _elements(
    network: SetNetwork, source: FaceArray, world: StressWorld | None = None
) -> NDArray[np.float32]:
    """Return the elements of all faces of a source, or of those that `world` uses (zeros for the others)."""
    number = len(source.labels)
    rows = np.arange(number) if world is None else np.union1d(world.faces, world.examples)
    some = elements_of(network, source, rows).numpy()
    out = np.zeros((number, some.shape[1]), dtype=np.float32)
    out[rows] = some
    return out


def _sized_worlds(
    parts: _Data, network: SetNetwork, sizes: Sequence[tuple[int, int]], done: _Done
) -> tuple[StressWorld, StressWorld]:
    """Return the calibration world and the largest test world that is neither too easy nor too hard."""
    calibrate, test = _elements(network, parts.calibrate), _elements(network, parts.test)
    for people, sets in sizes:
        ours = _world(parts.calibrate, calibrate, people, sets)
        theirs = _world(parts.test, test, people, sets)
        logistic = _calibrated_elements(ours)
        result = stress_elements(theirs, faces=FACES, logistic=logistic)
        _say(f"{people} people, {sets} sets: descriptor-per-element {np.round(result.means, 1)}")
        if (people, sets) == sizes[-1] or (result.means >= EASY).all():
            deep = stress_elements(theirs, faces=FACES, depth=30, logistic=logistic)
            done.add(_row(UPPER_BOUND, result.means, deep.means, result.errors, logistic))
            return ours, theirs
    raise AssertionError("the last world is always taken")


def _world(source: FaceArray, elements: NDArray[np.float32], people: int, sets: int) -> StressWorld:
    """Return a world of the first `people` people with three photos or more, in a fixed shuffle."""
    owner = source.labels
    numbers, photos = np.unique(owner, return_counts=True)
    several = np.random.default_rng(1).permutation(numbers[photos >= 3])[:people]
    known = np.isin(owner, several)
    single = np.isin(owner, numbers[photos == 1])
    labels = np.where(known, owner.astype(np.str_), "")
    # Others of several photos would be neither labelled nor strangers: they are left out.
    labels[~known & ~single] = "left out"
    keep = np.flatnonzero(labels != "left out")
    world = stress_world(elements[keep], labels[keep], sets=sets, queries=100, repeats=10)
    return replace(world, descriptors=elements, faces=keep[world.faces], examples=keep[world.examples])


def _calibrated_elements(world: StressWorld) -> Logistic:
    """Return the (w, b) that ranks best with every face stored, from a grid in units of strangers' spread."""
    world = replace(world, examples=world.examples[:2])  # enough to choose one of a dozen
    rows = world.descriptors[world.faces.ravel()[:2000]]
    similarity = rows @ rows.T
    middle, spread = float(np.median(similarity)), float(similarity.std())
    grid = [
        Logistic(k / spread, -k / spread * (middle + t * spread))
        for t in (1.0, 2.0, 3.0, 4.0)
        for k in (1.0, 2.0, 4.0)
    ]
    return max(grid, key=lambda one: float(stress_elements(world, faces=FACES, logistic=one).values.mean()))


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
    elements: NDArray[np.float32],
    labels: NDArray[np.int64],
    variant: Variant,
) -> None:
    network.before = network.after = None
    if place is not None:
        whiten(network, torch.from_numpy(elements), labels, (variant.size or 2,), place)


def _judged(aggregator: NetworkAggregator, ours: StressWorld, theirs: StressWorld) -> ClaimRow:
    logistic = calibrated(aggregator, ours, faces=FACES)
    ten = stress(aggregator, theirs, faces=FACES, logistic=logistic)
    thirty = stress(aggregator, theirs, faces=FACES, depth=30, logistic=logistic)
    return _row(aggregator.name, ten.means, thirty.means, ten.errors, logistic)


def _row(
    name: str,
    ten: NDArray[np.float64],
    thirty: NDArray[np.float64],
    errors: NDArray[np.float64],
    logistic: Logistic,
) -> ClaimRow:
    return ClaimRow(
        name, tuple(ten.tolist()), tuple(thirty.tolist()), tuple(errors.tolist()), logistic.w, logistic.b
    )


class _Done:
    """The rows judged so far, in a file, so that a run goes on where it stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: dict[str, ClaimRow] = {}
        self._before = 0.0
        if path.is_file():
            stored = json.loads(path.read_text(encoding="utf-8"))
            self._before = stored["seconds"]
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

    def spent(self, seconds: float) -> float:
        """Return the seconds of all runs together."""
        self._before += seconds
        self._write()
        return self._before

    def _write(self) -> None:
        fresh = self.path.with_suffix(".tmp")
        text = json.dumps(
            {"seconds": self._before, "rows": [asdict(row) for row in self._rows.values()]}, indent=1
        )
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self.path)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
