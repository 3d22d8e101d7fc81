"""The paper's claim at a small size: SetNet against its baselines, all trained alike, on unseen identities.

Every row is measured once per training seed, in the same test worlds; its error is over both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.evaluate.bootstrap import people_draws
from setnet.evaluate.experiments.claim_domains import Domain, test_world
from setnet.evaluate.experiments.orthogonality import gram_difference, identity_descriptors
from setnet.evaluate.methods.element_codes import CODE_BITS, code_name, coded_elements, element_bytes
from setnet.evaluate.methods.ranking_calibration import calibrated, calibrated_elements
from setnet.evaluate.methods.stress_measure import (
    FACES,
    PairSimilarities,
    StressTest,
    element_similarities,
    measured_sets,
    set_similarities,
)
from setnet.evaluate.report.claim_rows import measure
from setnet.evaluate.report.record import Record, Row, Run
from setnet.evaluate.worlds.stress_world import StressWorld
from setnet.learn import (
    VARIANTS,
    WITHOUT,
    FaceSource,
    NetworkAggregator,
    Recipe,
    SetNetwork,
    TrainingSettings,
    Variant,
    elements_of,
    fit_head,
    learned_exponents,
    load_backbone,
    new_backbone,
    pretrain,
    save_backbone,
    trained_variant,
    whiten,
)
from setnet.sets import Aggregator, Logistic, SetNet

DEPTHS = (10, 30)
WHITENED = 20_000  # pictures that whitening and lifts are fitted on, at most
ALPHAS = (1.0, 3.0, 10.0, 30.0)  # softness of NetVLAD's start to choose from
EASY = 60.0  # descriptor-per-element reaches this in the world that is used, if any is easy enough
UPPER_BOUND = "Descriptor-per-element"
LIFTS = (
    Recipe("Lift, 1,024 bits", "lift", 1024, 1, "products of directions, 1024 dimensions at one bit"),
    Recipe("Lift, 4,096 bits", "lift", 4096, 1, "products of directions, 4096 dimensions at one bit"),
)
Say = Callable[[str], None]


def claim(
    domain: Domain,
    out: Path,
    settings: TrainingSettings,
    *,
    seeds: int = 1,
    worlds: int = 3,
    losses: Sequence[str] = ("contrastive",),
    without: bool = False,
    say: Say = lambda text: None,
) -> Record:
    """Pre-train, train every variant and measure all; what is already in `out` is not done again.

    Parameters
    ----------
    seeds
        How often everything is trained, each time from another start.
    worlds
        How many test worlds, each with other identities where there are enough.
    losses
        Set training is done once with each.
    without
        Also train SetNet-2 without one of its parts each.
    """
    run = Run(
        "claim", settings.as_dict() | {"elements": domain.elements, "worlds": worlds}, out / "claim.json"
    )
    run.note(**domain.facts)
    for seed in range(seeds):
        _Seed(domain, out / f"seed-{seed}", replace(settings, seed=seed), run, worlds, say).measure(
            losses, without
        )
    return run.record()


class _Seed:
    """All rows of one training seed."""

    def __init__(
        self, domain: Domain, folder: Path, settings: TrainingSettings, run: Run, worlds: int, say: Say
    ) -> None:
        self.domain, self.folder, self.settings = domain, folder, settings
        self.run, self.worlds, self.say = run, worlds, say

    def measure(self, losses: Sequence[str], without: bool) -> None:
        """Train and measure what is not there yet: first what needs no set training."""
        plain = [variant for variant in VARIANTS if variant.size is None]
        trained = [variant for variant in VARIANTS if variant.size is not None]
        self._references()
        for variant in plain:
            self._rows_of(variant, "")
        for loss in losses:
            for variant in [*trained, *(WITHOUT if without else ())]:
                self._rows_of(variant, loss)

    @cached_property
    def backbone(self) -> Path:
        """The pre-trained backbone's file."""
        file = self.folder / "backbone.safetensors"
        if not file.is_file():
            torch.manual_seed(self.settings.seed)
            backbone = new_backbone(self.settings)
            report = pretrain(backbone, self.domain.pretrain, self.settings, self.folder / "pretrain")
            save_backbone(file, backbone, self.settings, {"steps": report.steps})
        load_backbone(file, self.settings)  # refuses a stored backbone of another shape
        return file

    @cached_property
    def baseline(self) -> _Described:
        """The pre-trained network's elements, which everything without set training shares."""
        return _Described(self._untrained, self.domain, self.test_worlds, self.settings.seed)

    @cached_property
    def _untrained(self) -> SetNetwork:
        folder = self.folder / "variants"
        return trained_variant(VARIANTS[0], self.backbone, self.domain.sets, self.settings, folder)

    @cached_property
    def test_worlds(self) -> dict[str, list[StressWorld]]:
        """The worlds of each test; their size is decided by the first seed and kept."""
        if "size" not in self.run.extra:
            self.run.note(size=list(self._size()))
        labelled, sets = self.run.extra["size"]
        return {
            name: [test_world(source, labelled, sets, number) for number in range(self.worlds)]
            for name, source in self.domain.tests.items()
        }

    def _alpha(self) -> float:
        """Return the softness of NetVLAD's start that ranks sets of validation identities best, untrained.

        It is decided by the first seed and kept.
        """
        if "alpha" not in self.run.extra:
            self.say("choosing the softness of NetVLAD's start on validation identities")
            fitted, judged = self.baseline.validation
            found = {}
            for alpha in ALPHAS:
                variant = Variant(f"alpha {alpha:g}", "netvlad", None, alpha=alpha)
                folder = self.folder / "alphas"
                network = trained_variant(variant, self.backbone, self.domain.sets, self.settings, folder)
                whiten(network, *self.baseline.sample, (2,), "after")
                head = NetworkAggregator(network, variant.name)
                quality = measured_sets(head, judged, logistic=calibrated(head, fitted)).means.mean()
                found[f"{alpha:g}"] = round(float(quality), 2)
            self.run.note(alphas=found, alpha=float(max(found, key=lambda alpha: found[alpha])))
        return float(self.run.extra["alpha"])

    def _size(self) -> tuple[int, int]:
        """Return the largest size in which the elements themselves can be ranked, by the first test world."""
        for size in self.domain.sizes[:-1]:
            world = {"": [test_world(self.domain.tests[""], *size, 0)]}
            described = _Described(self._untrained, self.domain, world, self.settings.seed)
            test = StressTest(described.worlds[""][0], DEPTHS[:1])
            logistic = calibrated_elements(described.calibration)
            if min(test.ndcg(one, logistic).mean() for one in element_similarities(test)) >= EASY:
                return size
        return self.domain.sizes[-1]

    def _missing(self, name: str, loss: str) -> str | None:
        """Return the key of a row that is not there yet."""
        key = f"{name}{f' ({loss})' if loss else ''}, seed {self.settings.seed}"
        if self.run.has(key):
            return None
        self.say(f"measuring {key}")
        return key

    def _references(self) -> None:
        """Measure every element kept, in floats and in codes, and lifts: what needs no network for sets."""
        dim = self.settings.backbone.dim
        for bits in (32, *CODE_BITS):
            name = UPPER_BOUND if bits == 32 else code_name(bits).capitalize()
            if key := self._missing(name, ""):
                size = element_bytes(dim, bits)
                facts = {"bytes_per_element": size} | self.baseline.orthogonality(None)
                self._add(key, name, "", _Elements(bits), self.baseline, facts, bound=bits == 32)
        for recipe in LIFTS:
            fits = recipe.dim <= dim * (dim + 1) // 2  # so many products and directions there are
            if fits and (key := self._missing(recipe.name, "")):
                sample = self.baseline.sample
                head = SetNet(fit_head(recipe, sample[0].numpy(), sample[1].astype(np.str_)))
                self._add(key, recipe.name, "", _Sets(head), self.baseline, {"bytes": head.bytes_per_item})

    def _rows_of(self, variant: Variant, loss: str) -> None:
        """Measure a variant as it is and whitened."""
        forms = {key: (name, place) for name, place in _forms(variant) if (key := self._missing(name, loss))}
        if not forms:
            return
        if variant.aggregator == "netvlad" and variant.alpha is None:
            variant = replace(variant, alpha=self._alpha())
        settings = self.settings
        if loss:
            settings = replace(settings, sets=replace(settings.sets, loss=loss))
        folder = self.folder / (loss or "variants")
        network = trained_variant(variant, self.backbone, self.domain.sets, settings, folder)
        described = self.baseline  # without set training a variant differs in its aggregator alone
        if variant.size is not None:
            described = _Described(network, self.domain, self.test_worlds, settings.seed)
        for key, (name, place) in forms.items():
            network.before = network.after = None
            if place is not None:
                whiten(network, *described.sample, (variant.size or 2,), place)
            aggregator = NetworkAggregator(network, name)
            facts = {"bytes": aggregator.bytes_per_item} | described.orthogonality(aggregator)
            if exponents := learned_exponents(network):
                facts["exponents"] = [min(exponents), max(exponents)]
            self._add(key, name, loss, _Sets(aggregator), described, facts)

    def _add(
        self,
        key: str,
        name: str,
        loss: str,
        method: _Sets | _Elements,
        described: _Described,
        facts: dict[str, object],
        bound: bool = False,
    ) -> None:
        logistic = method.logistic(described.calibration)
        values: dict[str, list[float]] = {}
        draws: dict[str, list[float]] = {}
        for test, worlds in described.worlds.items():
            found: dict[str, list[NDArray[np.float64]]] = {}
            for world in worlds:
                measured = StressTest(world, DEPTHS)
                for count, similarities in zip(FACES, method.similarities(measured), strict=True):
                    for depth, numbers in zip(DEPTHS, measured.ndcg(similarities, logistic), strict=True):
                        found.setdefault(measure(depth, count, test), []).append(numbers.mean(axis=0))
            for name_of, ones in found.items():
                values[name_of] = [float(one.mean()) for one in ones]
                draws[name_of] = people_draws(ones, [w.queries for w in worlds]).round(4).tolist()
        facts = {
            "row": name,
            "loss": loss,
            "seed": self.settings.seed,
            "w": logistic.w,
            "b": logistic.b,
        } | facts
        self.run.add(Row(key, values, facts, bound, draws))


class _Described:
    """A network's elements of the pictures that whitening, calibration and tests use."""

    def __init__(
        self, network: SetNetwork, domain: Domain, worlds: dict[str, list[StressWorld]], seed: int
    ) -> None:
        self._network, self._domain, self._worlds, self._seed = network, domain, worlds, seed

    @cached_property
    def sample(self) -> tuple[torch.Tensor, NDArray[np.int64]]:
        """Elements of training pictures, and whose they are."""
        drawn = self._domain.sets.sample(np.random.default_rng(self._seed), WHITENED)
        return elements_of(self._network, self._domain.sets, drawn.picks), drawn.labels

    @property
    def calibration(self) -> StressWorld:
        """The world that scores are calibrated in."""
        return self.validation[0]

    @cached_property
    def validation(self) -> list[StressWorld]:
        """The same, and another draw of the same identities to judge choices in."""
        source = self._domain.calibrate
        return self._filled(source, [test_world(source, *self._domain.calibration, n) for n in range(2)])

    @cached_property
    def worlds(self) -> dict[str, list[StressWorld]]:
        """The test worlds."""
        return {name: self._filled(self._domain.tests[name], some) for name, some in self._worlds.items()}

    def _filled(self, source: FaceSource, worlds: Sequence[StressWorld]) -> list[StressWorld]:
        """Return worlds with the elements of the pictures they use (zeros for the others)."""
        rows = np.unique(np.concatenate([np.append(w.faces.ravel(), w.examples.ravel()) for w in worlds]))
        some = elements_of(self._network, source, rows).numpy()
        out = np.zeros((len(source.labels), some.shape[1]), dtype=np.float32)
        out[rows] = some
        return [replace(world, descriptors=out) for world in worlds]

    def orthogonality(self, aggregator: Aggregator | None) -> dict[str, object]:
        """Return G_diff of the tested identities (eq. 4) over that of random directions."""
        world, labels = self.worlds[""][0], self._domain.tests[""].labels
        rows = np.unique(world.faces[:, :2])
        order = rows[np.argsort(labels[rows], kind="stable")]
        groups = np.split(np.arange(len(order)), np.flatnonzero(np.diff(labels[order])) + 1)
        vectors = world.descriptors[order]
        if aggregator is not None:
            vectors = aggregator.describe(vectors)
        identities = identity_descriptors(vectors, groups, np.random.default_rng(0))
        return {"gram": gram_difference(identities) / (len(groups) / np.sqrt(vectors.shape[1]))}


class _Sets:
    """A method with one vector per set."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator

    def logistic(self, world: StressWorld) -> Logistic:
        return calibrated(self._aggregator, world)

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        return set_similarities(self._aggregator, test)


class _Elements:
    """A method that keeps every element, in so many bits per dimension."""

    def __init__(self, bits: int) -> None:
        self._stored = coded_elements(bits)

    def logistic(self, world: StressWorld) -> Logistic:
        return calibrated_elements(world, stored=self._stored)

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        return element_similarities(test, stored=self._stored)


def _forms(variant: Variant) -> Iterator[tuple[str, str | None]]:
    """Yield a variant's rows: as it is, whitened, and for averages also whitened after aggregation."""
    yield variant.name, None
    if variant.aggregator == "average":
        yield f"{variant.name} + W", "before"
        yield f"{variant.name} + W (W after agg.)", "after"
    elif variant.aggregator not in ("memory", "muvera"):
        yield f"{variant.name} + W", "after"
