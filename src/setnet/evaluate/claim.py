"""The paper's claim, trained and tested: SetNet against pooled baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.evaluate.claim_data import (
    Described,
    Domain,
    ElementVectors,
    EveryElement,
    Pooled,
    SetVectors,
    Way,
    formed,
    forms,
    quality,
    test_world,
)
from setnet.evaluate.measures import people_draws
from setnet.evaluate.methods import CODE_BITS, code_name, element_bytes
from setnet.evaluate.ranking_calibration import best_ranking
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.stress_trial import FACES, StressTest
from setnet.evaluate.tables import measure
from setnet.heads import SetNet
from setnet.train import (
    NetworkAggregator,
    SetNetwork,
    TrainingSettings,
    fit_head,
    load_backbone,
    new_backbone,
    pretrain,
    save_backbone,
)
from setnet.train.network import learned_exponents
from setnet.train.recipes import Recipe
from setnet.train.stages import VARIANTS, WITHOUT, Variant, train_variant

ALPHAS = (1.0, 3.0, 10.0, 30.0)  # softness of NetVLAD's start
RATES = (0.25, 0.5, 1.0)  # of set training, times that of the settings
# What a family tries rates with: rows of the table themselves, so that the best trial is already one of them.
FAMILIES = {
    "average": Variant("Baseline-2", "average", 2),
    "gem": Variant("Baseline-GM-2", "gem", 2),
    "netvlad": Variant("SetNet-2", "netvlad", 2),
}
FAMILY_OF = {"before-fc": "average", "gem-per-dim": "gem"}


class Choices:
    """Chooses on validation identities what the run does not know yet, and keeps it there.

    Parameters
    ----------
    trained
        Returns a variant's network: variant, loss, rate (None for no set training).
    described
        Returns a network's elements.
    """

    def __init__(
        self,
        run: Run,
        settings: TrainingSettings,
        trained: Callable[[Variant, str, float | None], SetNetwork],
        described: Callable[[SetNetwork], Described],
        say: Callable[[str], None],
    ) -> None:
        self.run, self.settings = run, settings
        self.trained, self.described, self.say = trained, described, say

    def with_alpha(self, variant: Variant, baseline: Described) -> Variant:
        """Return a variant of NetVLAD with the start that ranks best untrained, unless it has its own."""
        if variant.aggregator != "netvlad" or variant.alpha is not None:
            return variant
        if "alpha" not in self.run.extra:
            self.say("choosing the softness of NetVLAD's start on validation identities")
            found = {}
            for alpha in ALPHAS:
                tried = Variant(f"alpha {alpha:g}", "netvlad", None, alpha=alpha)
                network = self.trained(tried, "", None)
                way = formed(network, Pooled(network), "after", 2, baseline)
                found[f"{alpha:g}"] = round(quality(way, baseline), 2)
            self.run.note(alphas=found, alpha=float(_best(found)))
        return replace(variant, alpha=float(self.run.extra["alpha"]))

    def rate(self, variant: Variant, loss: str, baseline: Described) -> float:
        """Return the rate with which the variant's family ranks best, in the better of its forms."""
        family = FAMILY_OF.get(variant.aggregator, variant.aggregator)
        chosen: dict[str, dict[str, Any]] = self.run.extra.get("rates", {})
        if family not in chosen.get(loss, {}):
            tried = self.with_alpha(FAMILIES[family], baseline)
            found = {}
            for times in RATES:
                rate = float(f"{times * self.settings.sets.rate:g}")  # as folders name it
                network = self.trained(tried, loss, rate)
                self.say(f"judging {tried.name} ({loss}, rate {rate:g}) on validation identities")
                found[f"{rate:g}"] = round(self._quality(network, tried), 2)
            one = {family: {"tried": found, "rate": float(_best(found))}}
            chosen = {**chosen, loss: chosen.get(loss, {}) | one}
            self.run.note(rates=chosen)
        return float(chosen[loss][family]["rate"])

    def _quality(self, network: SetNetwork, variant: Variant) -> float:
        described, pooled = self.described(network), Pooled(network)
        found = [
            quality(formed(network, pooled, place, variant.size or 2, described), described)
            for _, place in forms(variant)
        ]
        network.before = network.after = None
        return max(found)


def _best(found: dict[str, float]) -> str:
    return max(found, key=lambda name: found[name])


DEPTHS = (10, 30)
EASY = 60.0  # descriptor-per-element reaches this in the world that is used, if any is easy enough
UPPER_BOUND = "Descriptor-per-element"
LIFTS = (
    Recipe("Lift, 1,024 bits", "lift", 1024, 1, "products of directions, 1024 dimensions at one bit"),
    Recipe("Lift, 4,096 bits", "lift", 4096, 1, "products of directions, 4096 dimensions at one bit"),
)
Say = Callable[[str], None]


def evaluate_claim(
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
        self.choices = Choices(run, settings, self._trained, self._described, say)

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
            for variant in FAMILIES.values() if without else ():
                self._elements_of(variant, loss)

    @cached_property
    def backbone(self) -> Path:
        """The pre-trained backbone's file."""
        file = self.folder / "backbone.safetensors"
        if not file.is_file():
            self.say(f"pre-training the backbone, seed {self.settings.seed}")
            torch.manual_seed(self.settings.seed)
            backbone = new_backbone(self.settings)
            report = pretrain(backbone, self.domain.pretrain, self.settings, self.folder / "pretrain")
            save_backbone(file, backbone, self.settings, {"steps": report.steps})
        load_backbone(file, self.settings)  # refuses a stored backbone of another shape
        return file

    @cached_property
    def baseline(self) -> Described:
        """The pre-trained network's elements, which everything without set training shares."""
        return self._described(self._untrained)

    @cached_property
    def _untrained(self) -> SetNetwork:
        return self._trained(VARIANTS[0], "", None)

    def _trained(self, variant: Variant, loss: str, rate: float | None) -> SetNetwork:
        """Return a variant's network, trained with a loss at a rate of its own, or untrained."""
        settings, folder = self.settings, self.folder / "variants"
        if rate is not None:
            settings = replace(settings, sets=replace(settings.sets, loss=loss, rate=rate))
            folder = self.folder / loss / f"rate-{rate:g}"
            self.say(f"training {variant.name} ({loss}, rate {rate:g}), seed {settings.seed}")
        return train_variant(variant, self.backbone, self.domain.sets, settings, folder)

    def _described(self, network: SetNetwork) -> Described:
        return Described(network, self.domain, self._validation, self._tests, self.settings.seed)

    @cached_property
    def _validation(self) -> list[StressTest]:
        source = self.domain.calibrate
        return [StressTest(test_world(source, *self.domain.calibration, number)) for number in range(2)]

    @cached_property
    def _tests(self) -> dict[str, list[StressTest]]:
        """The tests by name; the size of their worlds is decided by the first seed and kept."""
        if "size" not in self.run.extra:
            self.run.note(size=list(self._size()))
        labelled, sets = self.run.extra["size"]
        return {
            name: [StressTest(test_world(source, labelled, sets, n), DEPTHS) for n in range(self.worlds)]
            for name, source in self.domain.tests.items()
        }

    def _size(self) -> tuple[int, int]:
        """Return the largest size in which the elements themselves can be ranked, by the first test world."""
        way = EveryElement(32)
        for size in self.domain.sizes[:-1]:
            tests = {"": [StressTest(test_world(self.domain.tests[""], *size, 0), DEPTHS[:1])]}
            seen = Described(self._untrained, self.domain, self._validation, tests, self.settings.seed)
            fitted, test = seen.validation[0], seen.tests[""][0]
            logistic = best_ranking(way.similarities(fitted), fitted)
            if min(test.ndcg(one, logistic).mean() for one in way.similarities(test)) >= EASY:
                return size
        return self.domain.sizes[-1]

    def _missing(self, name: str, loss: str) -> str | None:
        """Return the key of a row that is not there yet."""
        key = f"{name}{f' ({loss})' if loss else ''}, seed {self.settings.seed}"
        return None if self.run.has(key) else key

    def _references(self) -> None:
        """Measure every element kept, in floats and in codes, and lifts: what needs no network for sets."""
        dim = self.settings.backbone.dim
        for bits in (32, *CODE_BITS):
            name = UPPER_BOUND if bits == 32 else code_name(bits).capitalize()
            if key := self._missing(name, ""):
                size = element_bytes(dim, bits)
                facts = {"bytes_per_element": size} | self.baseline.orthogonality(None)
                self._add(key, name, "", EveryElement(bits), self.baseline, facts, bound=bits == 32)
        for recipe in LIFTS:
            fits = recipe.dim <= dim * (dim + 1) // 2  # so many products and directions there are
            if fits and (key := self._missing(recipe.name, "")):
                sample = self.baseline.sample
                head = SetNet(fit_head(recipe, sample[0].numpy(), sample[1].astype(np.str_)))
                facts = {"bytes": head.bytes_per_item}
                self._add(key, recipe.name, "", SetVectors(head), self.baseline, facts)

    def _rows_of(self, variant: Variant, loss: str) -> None:
        """Measure a variant as it is and whitened."""
        missing = {key: (name, place) for name, place in forms(variant) if (key := self._missing(name, loss))}
        if not missing:
            return
        variant = self.choices.with_alpha(variant, self.baseline)
        rate = self.choices.rate(variant, loss, self.baseline) if loss else None
        network = self._trained(variant, loss, rate)
        # Without set training a variant differs in its aggregator alone.
        described = self.baseline if rate is None else self._described(network)
        pooled = Pooled(network)
        for key, (name, place) in missing.items():
            way = formed(network, pooled, place, variant.size or 2, described)
            aggregator = NetworkAggregator(network, name)
            facts = {"bytes": aggregator.bytes_per_item} | described.orthogonality(aggregator)
            if rate is not None:
                facts["rate"] = rate
            if exponents := learned_exponents(network):
                facts["exponents"] = [min(exponents), max(exponents)]
            self._add(key, name, loss, way, described, facts)

    def _elements_of(self, variant: Variant, loss: str) -> None:
        """Measure what a variant loses before it pools: every element's own vector kept."""
        name = f"Every element of {variant.name}"
        if key := self._missing(name, loss):
            variant = self.choices.with_alpha(variant, self.baseline)
            network = self._trained(variant, loss, self.choices.rate(variant, loss, self.baseline))
            facts: dict[str, object] = {"bytes_per_element": NetworkAggregator(network, name).bytes_per_item}
            self._add(key, name, loss, ElementVectors(network), self._described(network), facts, bound=True)

    def _add(
        self,
        key: str,
        name: str,
        loss: str,
        way: Way,
        described: Described,
        facts: dict[str, object],
        bound: bool = False,
    ) -> None:
        self.say(f"measuring {key}")
        fitted = described.validation[0]
        logistic = best_ranking(way.similarities(fitted), fitted)
        values: dict[str, list[float]] = {}
        draws: dict[str, list[float]] = {}
        for title, tests in described.tests.items():
            found: dict[str, list[NDArray[np.float64]]] = {}
            for test in tests:
                for count, similarities in zip(FACES, way.similarities(test), strict=True):
                    for depth, numbers in zip(DEPTHS, test.ndcg(similarities, logistic), strict=True):
                        found.setdefault(measure(depth, count, title), []).append(numbers.mean(axis=0))
            for name_of, ones in found.items():
                values[name_of] = [float(one.mean()) for one in ones]
                draws[name_of] = people_draws(ones, [t.world.queries for t in tests]).round(4).tolist()
        facts = {
            "row": name,
            "loss": loss,
            "seed": self.settings.seed,
            "w": logistic.w,
            "b": logistic.b,
        } | facts
        self.run.add(Row(key, values, facts, bound, draws))
