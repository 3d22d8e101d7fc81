"""A descriptor adapted to degraded photos: what it gains and loses on people it did not see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.measures import match_rate_draws, true_match_rates
from setnet.evaluate.people import LabelledPeople
from setnet.evaluate.photos import AS_THEY_ARE, CopyFeatures, copy_features, photos_of_half
from setnet.evaluate.ranking_calibration import calibrated, calibrated_elements
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.stress_trial import (
    FACES,
    StressResult,
    StressWorld,
    measured_elements,
    measured_sets,
    stress_world,
)
from setnet.evaluate.tables import measure
from setnet.heads import Aggregator, Mean, SetNet
from setnet.train import (
    RECIPES,
    SetNetwork,
    TrainingSettings,
    adapt,
    fit_head,
    load_network,
    load_sface,
    new_network,
    save_network,
)
from setnet.train.sface import SFace
from setnet.train.sources import FeatureSource

ORIGINAL, ADAPTED = "original", "adapted"
ELEMENTS, VERIFICATION = "descriptor per element", "verification"
LIFTS = ("sface-128", "sface-512")
DISTILS = (0.5, 0.9, 1.0)  # shares of distillation in the loss to choose from
VALIDATED = 4  # one in so many training people is held out to choose on
FALSE_MATCH_RATES = (1e-3, 1e-4)
AT_ONCE = 64  # rows of features
Say = Callable[[str], None]


def evaluate_adaptation(
    photos: Path,
    trained: Sequence[Path],
    judged: Sequence[Path],
    out: Path,
    settings: TrainingSettings,
    *,
    blocks: int = 1,
    most: int = 4,
    sets: int = 16_000,
    say: Say = lambda text: None,
) -> Record:
    """Adapt SFace, and measure the original and the adapted descriptor; what is in `out` is not done again.

    Parameters
    ----------
    photos
        LFW's folder of identities.
    trained, judged
        Folders of degraded copies: those that are trained on, and others to judge by alone.
    blocks
        How many of SFace's last blocks are trained, beside its last layer.
    most
        Photos of a person, at most.
    sets
        Sets of the stress test.
    """
    kinds = {AS_THEY_ARE: photos} | {root.name: root for root in [*trained, *judged]}
    if len(kinds) != 1 + len(trained) + len(judged):
        raise InvalidInputError(f"copies are told apart by their folders' names, which are {sorted(kinds)}")
    about = {"blocks": blocks, "photos": most, "test_sets": sets, "kinds": [*kinds]}
    run = Run("adaptation", settings.as_dict() | about, out / "adaptation.json")
    run.note(trained=[root.name for root in trained], judged=[root.name for root in judged])
    work = _Adaptation(kinds, [root.name for root in trained], out, settings, blocks, most, run, say)
    work.measure(sets)
    return run.record()


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
        say: Say,
    ) -> None:
        self.kinds, self.trained, self.out, self.settings = kinds, trained, out, settings
        self.blocks, self.most, self.run, self.say = blocks, most, run, say
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
            fitting, judging = (_world(own, 2000, queries=60, repeats=2, seed=seed) for seed in (1, 2))
            logistic = logistic or calibrated(Mean(own.dim), fitting)
            found.append(float(measured_sets(Mean(own.dim), judging, logistic=logistic).means.mean()))
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
        fitting = _world(train, min(6000, sets), queries=80, repeats=2, seed=1)
        aggregator = self._aggregator(descriptor, method)
        logistic = calibrated(aggregator, fitting) if aggregator else calibrated_elements(fitting)
        for kind in missing:
            world = _world(self.people(descriptor, "test", kind), sets)
            result = (
                measured_sets(aggregator, world, logistic=logistic)
                if aggregator
                else measured_elements(world, logistic=logistic)
            )
            size = aggregator.bytes_per_item if aggregator else f"{4 * train.dim} per face"
            facts = {"w": logistic.w, "b": logistic.b, "bytes": size}
            self._add(method, descriptor, kind, *_numbers(result), facts)

    def _aggregator(self, descriptor: str, method: str) -> Aggregator | None:
        """Return what makes set vectors; a lift is fitted anew to the photos and trained copies."""
        if method == ELEMENTS:
            return None
        parts = [self.people(descriptor, "train", kind) for kind in (AS_THEY_ARE, *self.trained)]
        if method == "mean":
            return Mean(parts[0].dim)
        rows = np.concatenate([part.descriptors for part in parts])
        return SetNet(fit_head(RECIPES[method], rows, np.concatenate([part.labels for part in parts])))

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


def _numbers(result: StressResult) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the values and the draws of a stress test by measure."""
    values = {measure(10, n): own.mean(axis=1).tolist() for n, own in zip(FACES, result.values, strict=True)}
    draws = {measure(10, n): own.round(4).tolist() for n, own in zip(FACES, result.draws, strict=True)}
    return values, draws
