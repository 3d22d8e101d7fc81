"""The paper's claim, trained and tested: SetNet against pooled baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from setnet.evaluate.claim_data import (
    CachedPooling,
    Described,
    Domain,
    row_variants,
    test_world,
    validation_quality,
    whitened,
)
from setnet.evaluate.ranking_calibration import best_logistic
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.report import write_section
from setnet.evaluate.representations import CODE_BITS, EveryElement, SetVectors, code_name, element_bytes
from setnet.evaluate.stress_trial import FACES, Representation, StressTest, measure_ranking, ndcg_name
from setnet.evaluate.tables import Column, Table, result_table
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


def _best(found: dict[str, float]) -> str:
    return max(found, key=lambda name: found[name])


DEPTHS = (10, 30)
CLAIMED = "SetNet-3 + W"  # the paper's choice
EASY = 60.0  # descriptor-per-element reaches this in the world that is used, if any is easy enough
UPPER_BOUND = "Descriptor-per-element"
LIFTS = (
    Recipe("Lift, 1,024 bits", 1024, 1, "products of directions, 1024 dimensions at one bit"),
    Recipe("Lift, 4,096 bits", 4096, 1, "products of directions, 4096 dimensions at one bit"),
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
    device: str = "cpu",
    workers: int = 0,
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
    device, workers
        What networks run on, and how many processes load pictures.
    """
    run = Run(
        "claim", settings.as_dict() | {"elements": domain.elements, "worlds": worlds}, out / "claim.json"
    )
    run.note(**domain.facts)
    for seed in range(seeds):
        own = replace(settings, seed=seed)
        _Seed(domain, out / f"seed-{seed}", own, run, worlds, say, device, workers).measure(losses, without)
    return run.record()


class _Seed:
    """All rows of one training seed."""

    def __init__(
        self,
        domain: Domain,
        folder: Path,
        settings: TrainingSettings,
        run: Run,
        worlds: int,
        say: Say,
        device: str,
        workers: int,
    ) -> None:
        self.domain, self.folder, self.settings = domain, folder, settings
        self.run, self.worlds, self.say = run, worlds, say
        self.device, self.workers = device, workers

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
            report = pretrain(
                backbone,
                self.domain.pretrain,
                self.settings,
                self.folder / "pretrain",
                device=self.device,
                workers=self.workers,
            )
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
        return train_variant(
            variant,
            self.backbone,
            self.domain.sets,
            settings,
            folder,
            device=self.device,
            workers=self.workers,
        )

    def _described(self, network: SetNetwork) -> Described:
        return Described(network, self.domain, self._validation, self._tests, self.settings.seed, self.device)

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
        kept = EveryElement()
        for size in self.domain.sizes[:-1]:
            tests = {"": [StressTest(test_world(self.domain.tests[""], *size, 0), DEPTHS[:1])]}
            seen = Described(
                self._untrained, self.domain, self._validation, tests, self.settings.seed, self.device
            )
            logistic = best_logistic(kept, seen.validation[0])
            measured = measure_ranking(kept, seen.tests[""], logistic)
            if min(float(np.mean(own)) for own in measured.values.values()) >= EASY:
                return size
        return self.domain.sizes[-1]

    def _with_alpha(self, variant: Variant) -> Variant:
        """Return a variant of NetVLAD with the start that ranks best untrained, unless it has its own."""
        if variant.aggregator != "netvlad" or variant.alpha is not None:
            return variant
        if "alpha" not in self.run.extra:
            self.say("choosing the softness of NetVLAD's start on validation identities")
            found = {}
            for alpha in ALPHAS:
                tried = Variant(f"alpha {alpha:g}", "netvlad", None, alpha=alpha)
                network = self._trained(tried, "", None)
                way = whitened(network, CachedPooling(network), "after", 2, self.baseline)
                found[f"{alpha:g}"] = round(validation_quality(way, self.baseline), 2)
            self.run.note(alphas=found, alpha=float(_best(found)))
        return replace(variant, alpha=float(self.run.extra["alpha"]))

    def _rate(self, variant: Variant, loss: str) -> float:
        """Return the rate with which the variant's family ranks best, in the better of its forms."""
        family = FAMILY_OF.get(variant.aggregator, variant.aggregator)
        chosen: dict[str, dict[str, Any]] = self.run.extra.get("rates", {})
        if family not in chosen.get(loss, {}):
            tried = self._with_alpha(FAMILIES[family])
            found = {}
            for times in RATES:
                rate = float(f"{times * self.settings.sets.rate:g}")  # as folders name it
                network = self._trained(tried, loss, rate)
                self.say(f"judging {tried.name} ({loss}, rate {rate:g}) on validation identities")
                found[f"{rate:g}"] = round(self._quality(network, tried), 2)
            one = {family: {"tried": found, "rate": float(_best(found))}}
            chosen = {**chosen, loss: chosen.get(loss, {}) | one}
            self.run.note(rates=chosen)
        return float(chosen[loss][family]["rate"])

    def _quality(self, network: SetNetwork, variant: Variant) -> float:
        described, pooled = self._described(network), CachedPooling(network)
        found = [
            validation_quality(whitened(network, pooled, place, variant.size or 2, described), described)
            for _, place in row_variants(variant)
        ]
        network.before = network.after = None
        return max(found)

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
        missing = {
            key: (name, place) for name, place in row_variants(variant) if (key := self._missing(name, loss))
        }
        if not missing:
            return
        variant = self._with_alpha(variant)
        rate = self._rate(variant, loss) if loss else None
        network = self._trained(variant, loss, rate)
        # Without set training a variant differs in its aggregator alone.
        described = self.baseline if rate is None else self._described(network)
        pooled = CachedPooling(network)
        for key, (name, place) in missing.items():
            kept = whitened(network, pooled, place, variant.size or 2, described)
            aggregator = NetworkAggregator(network, name)
            facts = {"bytes": aggregator.bytes_per_item} | described.orthogonality(aggregator)
            if rate is not None:
                facts["rate"] = rate
            if exponents := learned_exponents(network):
                facts["exponents"] = [min(exponents), max(exponents)]
            self._add(key, name, loss, kept, described, facts)

    def _elements_of(self, variant: Variant, loss: str) -> None:
        """Measure what a variant loses before it pools: every element's own vector kept."""
        name = f"Every element of {variant.name}"
        if key := self._missing(name, loss):
            variant = self._with_alpha(variant)
            network = self._trained(variant, loss, self._rate(variant, loss))
            facts: dict[str, object] = {"bytes_per_element": NetworkAggregator(network, name).bytes_per_item}
            kept = EveryElement(change=NetworkAggregator(network, "").describe)
            self._add(key, name, loss, kept, self._described(network), facts, bound=True)

    def _add(
        self,
        key: str,
        name: str,
        loss: str,
        kept: Representation,
        described: Described,
        facts: dict[str, object],
        bound: bool = False,
    ) -> None:
        self.say(f"measuring {key}")
        logistic = best_logistic(kept, described.validation[0])
        values: dict[str, list[float]] = {}
        draws: dict[str, list[float]] = {}
        for title, tests in described.tests.items():
            measured = measure_ranking(kept, tests, logistic)
            for name_of, ones in measured.values.items():
                by_world = np.reshape(ones, (len(tests), -1)).mean(axis=1)
                values[f"{name_of} {title}".rstrip()] = by_world.tolist()
                draws[f"{name_of} {title}".rstrip()] = measured.draws[name_of]
        facts = {
            "row": name,
            "loss": loss,
            "seed": self.settings.seed,
            "w": logistic.w,
            "b": logistic.b,
        } | facts
        self.run.add(Row(key, values, facts, bound, draws))


def over_seeds(record: Record) -> list[Row]:
    """Return one row per method; its values are lists over training seeds of lists over worlds.

    A method that some seed has not been measured with is left out, so that all rows are about the same seeds.
    """
    groups: dict[str, list[Row]] = {}
    several = len({row.facts["loss"] for row in record.rows} - {""}) > 1
    for row in record.rows:
        loss = row.facts["loss"]
        name = f"{row.facts['row']}, {loss}" if loss and several else row.facts["row"]
        groups.setdefault(name, []).append(row)
    seeds = max((len(rows) for rows in groups.values()), default=0)
    return [_joined(name, rows) for name, rows in groups.items() if len(rows) == seeds]


def _joined(name: str, rows: Sequence[Row]) -> Row:
    facts = dict(rows[0].facts)
    if "gram" in facts:
        facts["gram"] = float(np.mean([row.facts["gram"] for row in rows]))
    values, draws = (
        {key: [cast(Sequence[float], part[key]) for part in parts] for key in parts[0]}
        for parts in ([row.values for row in rows], [row.draws for row in rows])
    )
    return Row(name, values, facts, rows[0].bound, draws)


@dataclass(frozen=True)
class Lead:
    """By how much a method is ahead of the best baseline at some number of elements."""

    elements: int
    baseline: str
    points: float
    error: float


def leads(rows: Sequence[Row], name: str, test: str = "") -> list[Lead]:
    """Return the lead of a row over the pooled baseline that is best at each number of elements.

    The baseline is chosen after the fact, which favours it; the error is that of the differences, over
    people, worlds and seeds.
    """
    ours = next(row for row in rows if row.name == name)
    loss = ours.facts["loss"]
    pooled = [row for row in rows if row.name.startswith("Baseline") and row.facts["loss"] in ("", loss)]
    found = []
    for count in FACES:
        key = ndcg_name(10, count, test)
        best = max(pooled, key=lambda row: row.estimate(key)[0])
        found.append(Lead(count, best.name, *ours.lead(best, key)))
    return found


def tables(record: Record) -> list[Table]:
    """Return nDCG of every test, leads over the best baseline, and what was chosen."""
    rows, elements = over_seeds(record), record.settings["elements"]
    tests = dict.fromkeys(["", *(key.partition(" ")[2] for key in (rows[0].values if rows else ()))])
    note = (
        "Mean ± standard error over training seeds and test worlds. Bold: best by more than the error "
        "of its lead; what keeps every element is excluded. G_diff: of the tested identities, over that of "
        "random directions."
    )
    found = []
    for test in tests:
        for depth in (10, 30):
            columns = [Column("size", "bytes", fact=True), Column("gram", "G_diff", fact=True, digits=2)]
            columns += [Column(ndcg_name(depth, count, test), f"{count} {elements}") for count in FACES]
            shown = [
                replace(row, facts={**row.facts, "size": _size(row)}, bound=_keeps_all(row)) for row in rows
            ]
            title = f"Networks trained alike, nDCG@{depth}{f', {test}' if test else ''}"
            found.append(result_table(title, shown, columns, note))
    return [*found, *(_lead_table(rows, test) for test in tests), _choices_table(record, rows)]


def _size(row: Row) -> str:
    each = row.facts.get("bytes_per_element")
    return f"{row.facts['bytes']:,}" if each is None else f"{each} per element"


def _keeps_all(row: Row) -> bool:
    return "bytes_per_element" in row.facts


def _lead_table(rows: Sequence[Row], test: str) -> Table:
    ours = [row.name for row in rows if row.name.startswith("SetNet") and "+ W" in row.name]
    cells = tuple(
        (
            name,
            *(f"{lead.points:+.1f} ± {lead.error:.1f} ({lead.baseline})" for lead in leads(rows, name, test)),
        )
        for name in ours
    )
    title = f"Lead over the best pooled baseline, nDCG@10{f', {test}' if test else ''}"
    held = [name for name in ours if name.startswith(CLAIMED) and is_reproduced(rows, name)]
    note = (
        f"The claim is that {CLAIMED} leads the best pooled baseline, trained with the same budget, at every "
        "number of elements by more than twice the standard error of its lead. Here: "
        f"{'reproduced by ' + ', '.join(held) if held else 'not reproduced in full'}."
    )
    return Table(title, ("method", *map(str, FACES)), cells, note=note if rows and not test else "")


def is_reproduced(rows: Sequence[Row], name: str) -> bool:
    """Return whether a row leads at every number of elements by more than twice the error of its lead."""
    return all(lead.points > 2 * lead.error for lead in leads(rows, name))


def _choices_table(record: Record, rows: Sequence[Row]) -> Table:
    """Return what was chosen, with the nDCG@10 of all that was tried, and the exponents learned."""
    extra = record.extra
    cells = []
    if "alpha" in extra:
        cells.append(("start of NetVLAD, alpha", f"{extra['alpha']:g}", _tried(extra["alphas"])))
    for loss, families in extra.get("rates", {}).items():
        for family, one in families.items():
            cells.append(
                (f"rate of set training, {family} ({loss})", f"{one['rate']:g}", _tried(one["tried"]))
            )
    for row in rows:
        if "exponents" in row.facts and "+ W" not in row.name:
            low, high = row.facts["exponents"]
            cells.append((f"exponent p learned from 3, {row.name}", f"{low:.2f} to {high:.2f}", ""))
    return Table(
        "Chosen on validation identities", ("what", "chosen", "nDCG@10 of those tried"), tuple(cells)
    )


def _tried(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name}: {quality}" for name, quality in found.items())


def write_claim(record: Record, page: Path) -> Path:
    """Put tables and figure into a page; a run with several losses, or without parts, has its own section."""
    losses = {row.facts["loss"] for row in record.rows} - {""}
    parts = any(row.facts["row"] in {variant.name for variant in WITHOUT} for row in record.rows)
    subject = record.settings["elements"] + (" by parts" if parts or len(losses) > 1 else "")
    name, title = f"claim-{subject.replace(' ', '-')}", f"The paper's claim on {subject}"
    return write_section(page, name, title, record, tables(record), "setnet train claim")
