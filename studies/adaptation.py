"""A descriptor adapted to degraded photos: what it gains and loses on people it did not see."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.measures import match_rate_draws
from setnet.evaluate.people import LabelledPeople, half_of
from setnet.evaluate.ranking_calibration import best_logistic
from setnet.evaluate.record import OnProgress, Record, Row, Run
from setnet.evaluate.representations import EveryElement, SetVectors
from setnet.evaluate.settings import Settings as BaseSettings
from setnet.evaluate.settings import experiment, option, setting
from setnet.evaluate.stress_trial import (
    FACES,
    StressTest,
    StressWorld,
    measure_ranking,
    ndcg_name,
    stress_world,
)
from setnet.evaluate.tables import Column, Table, result_table
from setnet.heads import Mean, SetNet
from setnet.train import (
    RECIPES,
    SetNetwork,
    TrainingSettings,
    fit_head,
    load_network,
    load_settings,
    new_network,
    save_network,
)
from setnet.train.faces import FacePhotos, identity_photos
from studies.distillation import FeatureSource, adapt
from studies.features import cache_features
from studies.sface import SFace, load_sface

SETTINGS = str(Path(__file__).with_name("adapt.toml"))
TITLE = "SFace adapted to degraded photos"
ORIGINAL, ADAPTED = "original", "adapted"
ELEMENTS, VERIFICATION = "descriptor per element", "verification"
LIFTS = ("lift-128", "lift-512")
DISTILS = (0.5, 0.9, 1.0)  # shares of distillation in the loss to choose from
VALIDATED = 4  # one in so many training people is held out to choose on
FALSE_MATCH_RATES = (1e-3, 1e-4)
AT_ONCE = 64  # rows of features


AS_THEY_ARE = "as they are"


@dataclass(frozen=True, eq=False)
class CopyFeatures:
    """Features of one kind of copies of photos.

    Attributes
    ----------
    features
        A row for each copy with a face.
    photos
        Which photo each row is a copy of.
    people
        The person of every photo, with a face or without.
    """

    features: NDArray[np.float16]
    photos: NDArray[np.int64]
    people: NDArray[np.str_]

    @property
    def labels(self) -> NDArray[np.str_]:
        """Whose face each row is."""
        return self.people[self.photos]


def photos_of_half(root: Path, half: str, most: int) -> list[str]:
    """Return ``person/photo.jpg`` of the first `most` photos of each person of a half of LFW's people."""
    if not root.is_dir():
        raise InvalidInputError(f"{root} is no folder: give LFW's folder of identities")
    found = identity_photos(root)
    names = np.array([photos[0].parent.name for photos in found])
    chosen = half_of(names, half)
    return [
        f"{path.parent.name}/{path.name}"
        for photos, wanted in zip(found, chosen, strict=True)
        if wanted
        for path in photos[:most]
    ]


def copy_features(
    root: Path, names: Sequence[str], network: SFace, last: int, settings: TrainingSettings, kept: Path
) -> CopyFeatures:
    """Return what SFace without its `last` blocks makes of the photos called `names` below `root`.

    Faces are looked for in each copy again, as at run time. Places and features are kept as files that begin
    with the name `kept`.
    """
    paths = [root / name for name in names]
    if missing := [path for path in paths if not path.is_file()]:
        raise InvalidInputError(
            f"{missing[0]} is missing: make copies of all photos by `python -m studies.degrade PHOTOS {root}`"
        )
    people = np.array([path.parent.name for path in paths])
    owner = np.unique(people, return_inverse=True)[1].astype(np.int64)
    places = kept.with_name(f"{kept.name}-places.bin")
    source = FacePhotos(paths, owner, network.spec, settings.augment, str(root), places)
    rows = np.flatnonzero(source.has_face)
    before, _ = network.split(last)
    features = cache_features(before, lambda: source, rows, kept.with_name(f"{kept.name}-features.npy"))
    return CopyFeatures(features, rows, people)


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """Adapt SFace to degraded photos on half of LFW's people; compare both on the other half.

    Its last blocks and layer learn to describe a degraded copy (python -m studies.degrade) as the photo itself,
    and to tell sets apart. Continues where it stopped.
    """

    photos: Path = field(
        metadata=option("LFW's folder of identities.", metavar="LFW", is_argument=True, counts=False)
    )
    trained: Sequence[Path] = field(
        metadata=option("Degraded copies to train on; repeatable.", metavar="DIR", counts=False)
    )
    out: Path = field(metadata=option("The run's folder; made or continued.", metavar="RUN", counts=False))
    judged: Sequence[Path] = setting(
        (), "Other degraded copies, to judge by alone; repeatable.", metavar="DIR", counts=False
    )
    changes: Sequence[str] = setting(
        (),
        "Override a setting of training, such as --set sets.steps=500; repeatable.",
        "--set",
        metavar="NAME=VALUE",
        counts=False,
    )
    blocks: int = setting(1, "Of SFace's 13 blocks, train so many last ones.", minimum=0)
    most: int = setting(4, "Photos of a person, at most.", "--photos", minimum=3, counts=False)
    sets: int = setting(16_000, "Sets of the stress test.", minimum=100, counts=False)

    @property
    def training(self) -> TrainingSettings:
        """The settings of training, with the changes."""
        return replace(load_settings(SETTINGS, self.changes), seed=self.seed)

    @property
    def kinds(self) -> dict[str, Path]:
        """The folders of photos by name."""
        kinds = {AS_THEY_ARE: self.photos} | {root.name: root for root in [*self.trained, *self.judged]}
        if len(kinds) != 1 + len(self.trained) + len(self.judged):
            raise InvalidInputError(
                f"copies are told apart by their folders' names, which are {sorted(kinds)}"
            )
        return kinds

    def identity(self) -> dict[str, Any]:
        """Return what the numbers depend on."""
        about = {"photos": self.most, "test_sets": self.sets, "kinds": [*self.kinds]}
        return self.training.as_dict() | super().identity() | about


def run(settings: Settings, json: Path | None = None, progress: OnProgress | None = None) -> Record:
    """Adapt SFace and measure it before and after; what is in `out` is not done again."""
    return _run(settings, json or settings.out / "adaptation.json", progress)


@experiment("adaptation")
def _run(run: Run, settings: Settings) -> None:
    trained = [root.name for root in settings.trained]
    run.total = 2 * 5 * len(settings.kinds)
    run.note(trained=trained, judged=[root.name for root in settings.judged])
    _Adaptation(
        settings.kinds, trained, settings.out, settings.training, settings.blocks, settings.most, run
    ).measure(settings.sets)


class _Adaptation:
    """The photos, the two descriptors and the rows of one adaptation."""

    def __init__(
        self,
        kinds: Mapping[str, Path],
        trained: Sequence[str],
        out: Path,
        settings: TrainingSettings,
        blocks: int,
        most: int,
        run: Run,
    ) -> None:
        self.kinds, self.trained, self.out, self.settings = kinds, trained, out, settings
        self.blocks, self.most, self.run, self.say = blocks, most, run, run.say
        self.features = cache(self._features)
        self.people = cache(self._people)

    def _features(self, half: str, kind: str) -> CopyFeatures:
        """Return the features of one half of the people in one kind of copies."""
        self.say(f"features of the {half} half, {kind}")
        names = photos_of_half(self.kinds[AS_THEY_ARE], half, self.most)
        kept = self.out / "features" / f"{half}-{kind.replace(' ', '-')}"
        return copy_features(self.kinds[kind], names, self.original, self.blocks, self.settings, kept)

    @cached_property
    def original(self) -> SFace:
        """SFace as it is, never trained."""
        return load_sface()

    def _fresh(self) -> tuple[SFace, SetNetwork]:
        """Return SFace, and the network of its end, which shares its weights."""
        torch.manual_seed(self.settings.seed)
        whole = deepcopy(self.original)
        return whole, new_network(whole.split(self.blocks)[1], self.settings).eval()

    @cached_property
    def training(self) -> FeatureSource:
        """Photos and trained copies of all training people; a copy should be like its photo."""
        photos = self.features("train", AS_THEY_ARE)
        place = np.full(len(photos.people), -1)
        place[photos.photos] = np.arange(len(photos.photos))
        targets = _elements(self._fresh()[1], photos.features)
        features, of = [photos.features], [photos.photos]
        for kind in self.trained:
            copies = self.features("train", kind)
            paired = place[copies.photos] >= 0  # a photo without a face is nothing to be like
            features.append(copies.features[paired])
            of.append(copies.photos[paired])
        each = np.concatenate(of)
        labels = np.unique(photos.people, return_inverse=True)[1][each]
        wanted = torch.from_numpy(targets[place[each]])
        return FeatureSource(np.concatenate(features), labels.astype(np.int64), wanted, "photos and copies")

    @cached_property
    def held_out(self) -> NDArray[np.bool_]:
        """Which training people, in order of names, choices are validated on."""
        people = len(np.unique(self.features("train", AS_THEY_ARE).people))
        return np.asarray(np.random.default_rng(0).permutation(people) % VALIDATED == 0)

    def distil(self) -> float:
        """Return the share of distillation that is best on people held out of the training half."""
        if "distil" not in self.run.extra:
            fitted = self.training.only(np.flatnonzero(~self.held_out[self.training.labels]))
            tried = {ORIGINAL: self._validated(self._fresh()[1])}
            for share in DISTILS:
                self.say(f"trying a share of distillation of {share:g}")
                _, network = self._fresh()
                adapt(network, fitted, self.settings, self.out / "tried" / f"{share:g}", share)
                tried[f"{share:g}"] = self._validated(network)
            best = max(DISTILS, key=lambda share: tried[f"{share:g}"])
            self.run.note(tried={name: round(value, 2) for name, value in tried.items()}, distil=best)
        return float(self.run.extra["distil"])

    def _validated(self, network: SetNetwork) -> float:
        """Return nDCG@10 of mean pooling for the held-out people, over photos and trained copies."""
        names = np.unique(self.features("train", AS_THEY_ARE).people)[self.held_out]
        found: list[float] = []
        logistic = None
        for kind in (AS_THEY_ARE, *self.trained):
            own = _described(network, self.features("train", kind), names)
            fitting, judging = (
                StressTest(_world(own, 2000, queries=60, repeats=2, seed=seed)) for seed in (1, 2)
            )
            mean = SetVectors(Mean(own.dim))
            logistic = logistic or best_logistic(mean, fitting)
            measured = measure_ranking(mean, [judging], logistic)
            found.append(float(np.mean([*measured.values.values()])))
        return float(np.mean(found))

    @cached_property
    def ends(self) -> dict[str, SetNetwork]:
        """The networks that make descriptors of features."""
        stored = self.out / "network.safetensors"
        if not stored.is_file():
            share = self.distil()
            self.say(f"adapting on all training people, share of distillation {share:g}")
            whole, network = self._fresh()
            source = self.training
            report = adapt(network, source, self.settings, self.out / "adapted", share)
            about = {"trained on": source.where, "people": source.people, "steps": report.steps}
            made = SetNetwork(whole, network.aggregator, network.w.item(), network.b.item())
            save_network(stored, made, self.settings, about | {"distil": share, "blocks": self.blocks})
        adapted = load_network(stored).network.backbone
        assert isinstance(adapted, SFace)
        end = new_network(adapted.split(self.blocks)[1], self.settings).eval()
        return {ORIGINAL: self._fresh()[1], ADAPTED: end}

    def _people(self, descriptor: str, half: str, kind: str) -> LabelledPeople:
        return _described(self.ends[descriptor], self.features(half, kind))

    def measure(self, sets: int) -> None:
        """Measure what is not there yet: the original and the adapted descriptor on every kind of photos."""
        for descriptor in (ORIGINAL, ADAPTED):
            for method in ("mean", *LIFTS, ELEMENTS):
                self._sets(descriptor, method, sets)
            for kind in self._missing(VERIFICATION, descriptor):
                rates = true_match_rates(self.people(descriptor, "test", kind), FALSE_MATCH_RATES)
                names = [f"tar@{rate:g}" for rate in FALSE_MATCH_RATES]
                values = {name: [float(own.mean())] for name, own in zip(names, rates, strict=True)}
                draws = dict(zip(names, match_rate_draws(rates).round(4).tolist(), strict=True))
                self._add(VERIFICATION, descriptor, kind, values, draws, {})

    def _sets(self, descriptor: str, method: str, sets: int) -> None:
        """Measure one method with one descriptor; its score is calibrated on training photos as they are."""
        missing = list(self._missing(method, descriptor))
        if not missing:
            return
        train = self.people(descriptor, "train", AS_THEY_ARE)
        kept = self._representation(descriptor, method)
        fitting = StressTest(_world(train, min(6000, sets), queries=80, repeats=2, seed=1))
        logistic = best_logistic(kept, fitting)
        for kind in missing:
            world = _world(self.people(descriptor, "test", kind), sets)
            measured = measure_ranking(kept, [StressTest(world)], logistic)
            size: int | str = f"{4 * train.dim} per face"
            if isinstance(kept, SetVectors):
                size = kept.aggregator.bytes_per_item
            facts = {"w": logistic.w, "b": logistic.b, "bytes": size}
            self._add(method, descriptor, kind, measured.values, measured.draws, facts)

    def _representation(self, descriptor: str, method: str) -> SetVectors | EveryElement:
        """Return what is kept of a set; a lift is fitted again to the photos and trained copies."""
        if method == ELEMENTS:
            return EveryElement()
        parts = [self.people(descriptor, "train", kind) for kind in (AS_THEY_ARE, *self.trained)]
        if method == "mean":
            return SetVectors(Mean(parts[0].dim))
        rows = np.concatenate([part.descriptors for part in parts])
        labels = np.concatenate([part.labels for part in parts])
        return SetVectors(SetNet(fit_head(RECIPES[method], rows, labels)))

    def _missing(self, method: str, descriptor: str) -> Iterator[str]:
        for kind in self.kinds:
            if not self.run.has(_name(method, descriptor, kind)):
                self.say(f"measuring {_name(method, descriptor, kind)}")
                yield kind

    def _add(
        self,
        method: str,
        descriptor: str,
        kind: str,
        values: Mapping[str, list[float]],
        draws: Mapping[str, list[float]],
        facts: Mapping[str, object],
    ) -> None:
        named = {"method": method, "descriptor": descriptor, "photos": kind}
        bound = method == ELEMENTS
        self.run.add(Row(_name(method, descriptor, kind), values, named | dict(facts), bound, draws))


def _name(method: str, descriptor: str, kind: str) -> str:
    return f"{method}, {descriptor}, photos {kind}"


def _elements(network: SetNetwork, features: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return the descriptors that the end of a network makes of features."""
    pieces = []
    with torch.no_grad():
        for start in range(0, len(features), AT_ONCE):
            some = np.asarray(features[start : start + AT_ONCE], np.float32)
            pieces.append(network.elements(torch.from_numpy(some)).numpy())
    return np.concatenate(pieces)


def _described(
    network: SetNetwork, copies: CopyFeatures, people: NDArray[np.str_] | None = None
) -> LabelledPeople:
    """Return the descriptors of all people, or of some."""
    labels, features = copies.labels, copies.features
    if people is not None:
        rows = np.flatnonzero(np.isin(labels, people))
        labels, features = labels[rows], features[rows]
    return LabelledPeople(_elements(network, features), labels)


def _world(
    people: LabelledPeople, sets: int, queries: int = 100, repeats: int = 4, seed: int = 0
) -> StressWorld:
    return stress_world(
        people.descriptors, people.labels, sets=sets, queries=queries, repeats=repeats, seed=seed
    )


ROWS_AT_ONCE = 512


def true_match_rates(people: LabelledPeople, rates: Sequence[float]) -> NDArray[np.float64]:
    """Return (rates, people): the percentage of each person's pairs of faces accepted at a false match rate.

    The threshold of a rate is what that share of all non-matching pairs exceeds; people are those with two faces
    or more, in order of names.

    >>> rows = np.eye(3, dtype=np.float32)[[0, 0, 1, 2]]
    >>> true_match_rates(LabelledPeople(rows, np.array(["a", "a", "b", "c"])), [0.1]).tolist()
    [[100.0]]
    """
    groups = people.groups(2)
    non_matches = np.concatenate([*_non_matches(people), np.empty(0, np.float32)])
    if not groups or not len(non_matches):
        raise InvalidInputError("verification needs two faces of one person and a face of another")
    bars = np.quantile(non_matches, 1.0 - np.asarray(rates, np.float64), method="higher")
    accepted = [[100.0 * (genuine > bar).mean() for genuine in _genuine(people, groups)] for bar in bars]
    return np.array(accepted)


def _non_matches(people: LabelledPeople) -> Iterator[NDArray[np.float32]]:
    """Yield the similarities of all pairs of faces of different people; an unknown face is like no other."""
    rows, labels = people.descriptors, people.labels
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some, own = rows[start : start + ROWS_AT_ONCE], labels[start : start + ROWS_AT_ONCE]
        later = np.arange(len(rows))[None, :] > np.arange(start, start + len(some))[:, None]
        other = (own[:, None] != labels[None, :]) & later
        yield (some @ rows.T)[other]


def _genuine(people: LabelledPeople, groups: Sequence[NDArray[np.int64]]) -> Iterator[NDArray[np.float32]]:
    """Yield the similarities of all pairs of faces of each person."""
    for group in groups:
        own = people.descriptors[group]
        yield (own @ own.T)[np.triu_indices(len(group), 1)]


NOTE = (
    "Mean ± standard error over the queried people. (w, b) of every method and descriptor was calibrated, in "
    "the same way, on photos of the training half as they are."
)


def tables(record: Record) -> list[Table]:
    """Return a table per kind of photos, one of verification and one of the gains."""
    sets = [row for row in record.rows if _is_of_sets(row)]
    single = [row for row in record.rows if not _is_of_sets(row)]
    columns = [Column("bytes", "bytes", fact=True)]
    columns += [Column(ndcg_name(10, count), f"{count} faces") for count in FACES]
    found = [
        result_table(f"Photos {kind}, nDCG@10", _named(sets, kind), columns, NOTE)
        for kind in record.settings["kinds"]
    ]
    rates = [key for row in single[:1] for key in row.values]
    matches = [Column(key, f"at FMR {key.removeprefix('tar@')}", digits=2) for key in rates]
    shown = [replace(row, name=f"{row.facts['descriptor']}, photos {row.facts['photos']}") for row in single]
    found.append(result_table("Verification: genuine pairs accepted, percent", shown, matches))
    gains = [_gains(*part) for part in ((sets, "nDCG@10"), (single, "verification")) if part[0]]
    if gains:
        gains[0] = replace(gains[0], note=summary(record))
    return [*found, *gains]


def summary(record: Record) -> str:
    """Return in words where the adapted descriptor is better, and where it is worse, by two errors."""
    lines = []
    for kind in record.settings["kinds"]:
        leads = [
            lead
            for ours, theirs in _pairs(record.rows)
            if ours.facts["photos"] == kind
            for lead in (ours.lead(theirs, key) for key in ours.values)
        ]
        better = sum(points > 2 * error for points, error in leads)
        worse = sum(points < -2 * error for points, error in leads)
        trained = "trained on" if kind in record.extra["trained"] else "not trained on"
        lines.append(
            f"Photos {kind} ({trained}): adapted is better in {better} and worse in {worse} of "
            f"{len(leads)} measures by more than two standard errors."
        )
    return "\n".join(lines)


def _is_of_sets(row: Row) -> bool:
    return ndcg_name(10, FACES[0]) in row.values


def _named(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the rows of one kind of photos, those of one method beside each other."""
    own = [row for row in rows if row.facts["photos"] == kind]
    methods = [row.facts["method"] for row in own]
    own = sorted(own, key=lambda row: methods.index(row.facts["method"]))
    return [replace(row, name=f"{row.facts['method']}, {row.facts['descriptor']}") for row in own]


def _pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the adapted and the original row of each method and kind of photos."""
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row.facts["method"], row.facts["photos"]), {})[row.facts["descriptor"]] = row
    return [(both["adapted"], both["original"]) for both in found.values() if len(both) == 2]


def _gains(rows: Sequence[Row], title: str) -> Table:
    keys = [*rows[0].values]
    cells = tuple(
        (
            f"{ours.facts['method']}, photos {ours.facts['photos']}",
            *("{:+.2f} ± {:.2f}".format(*ours.lead(theirs, key)) for key in keys),
        )
        for ours, theirs in _pairs(rows)
    )
    heads = [key.replace("ndcg10@", "faces: ").replace("tar@", "FMR ") for key in keys]
    return Table(f"Gain by adaptation, {title}", ("method", *heads), cells)


if __name__ == "__main__":
    from setnet.cli.evaluate import run_study

    run_study(sys.modules[__name__], "python -m studies.adaptation")
