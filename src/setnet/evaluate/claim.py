"""The paper's claim, trained and tested: SetNet against pooled baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
import torch

from setnet.evaluate.claim_data import (
    CachedPooling,
    Described,
    Domain,
    Test,
    make_world,
    row_variants,
    whiten_row,
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
from setnet.train.loop import ProcessGroup
from setnet.train.network import learned_exponents
from setnet.train.recipes import Recipe
from setnet.train.settings import BackboneSettings
from setnet.train.stages import VARIANTS, Variant, train_variant

DEPTHS = (10, 30)
CLAIMED = "SetNet-3 + W"  # the paper's choice
UPPER_BOUND = "Descriptor-per-element"
LIFTS = (
    Recipe("Lift, 1,024 bits", 1024, 1, "products of directions, 1024 dimensions at one bit"),
    Recipe("Lift, 4,096 bits", 4096, 1, "products of directions, 4096 dimensions at one bit"),
)
LAST_REFERENCE = code_name(CODE_BITS[-1]).capitalize()
Say = Callable[[str], None]


def evaluate_claim(
    domain: Domain,
    out: Path,
    settings: TrainingSettings,
    *,
    seeds: int = 0,
    worlds: int = 0,
    losses: Sequence[str] = (),
    record: Path | None = None,
    device: str = "cpu",
    workers: int = 0,
    group: ProcessGroup | None = None,
    say: Say = lambda text: None,
    trainer: type[ClaimTrainer] | None = None,
) -> Record:
    """Pre-train, train every variant and measure all.

    What a training gave is written at once; what stands in `record` is not done again, without `out` neither.

    Parameters
    ----------
    seeds, worlds, losses
        As in `Domain`, where they are not given.
    record
        The file of what was measured; in `out` without it.
    device, workers
        What networks run on, and how many processes load pictures.
    group
        The processes that train together; the first one measures.
    trainer
        What trains and measures one seed; by default by the rates and starts of the settings.
    """
    seeds, worlds, losses = seeds or domain.seeds, worlds or domain.worlds, losses or domain.losses
    group = group or ProcessGroup()
    about = settings.as_dict() | {"elements": domain.elements, "worlds": worlds}
    run = Run("claim", about, record or out / "claim.json")
    if group.rank > 0:
        run.path = None  # the first process writes
    run.note(**domain.facts)
    usual = settings.backbone

    def one(seed: int, name: str = usual.name, dim: int = usual.dim) -> ClaimTrainer:
        own = replace(settings, seed=seed)
        if (name, dim) != (usual.name, usual.dim):
            backbone, aggregator = replace(usual, name=name, dim=dim), replace(settings.aggregator, dim=dim)
            own = replace(own, backbone=backbone, aggregator=aggregator)
        return (trainer or ClaimTrainer)(domain, out, own, usual, run, worlds, say, device, workers, group)

    starts = [one(seed) for seed in range(seeds)]
    others = [one(0, *other) for other in domain.others]
    if group.number > 1:
        for start in starts:
            start.train(losses[0], VARIANTS)
        for start in others:
            start.train(losses[0], start.compared(losses[0]))
    if group.rank > 0:
        return run.record()
    for start in starts:
        start.measure(losses[0])
    for loss in losses[1:]:
        starts[0].compare(loss, losses[0])
    for start in others:
        start.compare(losses[0], losses[0])
    return run.record()


class ClaimTrainer:
    """Trains the networks of one seed and measures all rows; a subclass may choose rates and starts."""

    def __init__(
        self,
        domain: Domain,
        out: Path,
        settings: TrainingSettings,
        usual: BackboneSettings,
        run: Run,
        worlds: int,
        say: Say,
        device: str,
        workers: int,
        group: ProcessGroup,
    ) -> None:
        self.domain, self.settings = domain, settings
        self.run, self.worlds, self.say = run, worlds, say
        self.device, self.workers, self.group = device, workers, group
        own, self.label = settings.backbone, f"seed {settings.seed}"
        self.folder = out / f"seed-{settings.seed}"
        if (own.name, own.dim) != (usual.name, usual.dim):
            self.label = f"{own.name}, D_e = {own.dim}, {self.label}"
            self.folder = out / f"{own.name}-{own.dim}-seed-{settings.seed}"

    def train(self, loss: str, variants: Sequence[Variant]) -> None:
        """Train what rows are missing of, in all processes together."""
        for variant in variants:
            if variant.size and any(self.missing(name, loss) for name, _ in row_variants(variant)):
                self.trained(variant, loss, self.settings.sets.rate)

    def compared(self, first: str) -> list[Variant]:
        """Return SetNet and the baseline that stands for all, with the loss `first`."""
        names = (self.best_baseline(first), "SetNet-2", "SetNet-3")
        return [variant for variant in VARIANTS if variant.name in names]

    def best_baseline(self, loss: str) -> str:
        """Return the baseline to compare SetNet with where not all are trained."""
        return "Baseline-2"

    def rate(self, variant: Variant, loss: str) -> float:
        """Return the rate of set training."""
        return self.settings.sets.rate

    def with_start(self, variant: Variant) -> Variant:
        """Return a variant with the softness of its start."""
        return variant

    def check_backbone(self) -> None:
        """Raise unless the pre-trained network is good enough to train on sets."""

    def measure(self, loss: str) -> None:
        """Train and measure all that is not there yet: first what needs no set training."""
        self._untrained_rows()
        for variant in VARIANTS:
            if variant.size is not None:
                self.rows_of(variant, loss)

    def compare(self, loss: str, first: str) -> None:
        """Measure `compared` alone."""
        self._untrained_rows()
        for variant in self.compared(first):
            self.rows_of(variant, loss)

    def _untrained_rows(self) -> None:
        self._references(lambda: self.baseline, "", "")
        for variant in VARIANTS:
            if variant.size is None:
                self.rows_of(variant, "")

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
                self.group,
                self.device,
                workers=self.workers,
            )
            if self.group.rank == 0:
                save_backbone(file, backbone, self.settings, {"steps": report.steps})
        self.group.wait()
        load_backbone(file, self.settings)  # refuses a stored backbone of another shape
        return file

    @cached_property
    def baseline(self) -> Described:
        """The pre-trained network's elements, which everything without set training shares."""
        return self.described(self.untrained)

    @cached_property
    def untrained(self) -> SetNetwork:
        """The pre-trained network, its elements averaged."""
        return self.trained(VARIANTS[0], "", None)

    def trained(self, variant: Variant, loss: str, rate: float | None) -> SetNetwork:
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
            self.group,
            self.device,
            self.workers,
        )

    def described(self, network: SetNetwork) -> Described:
        """Return the elements that a network makes."""
        return Described(network, self.domain, self._validation, self._tests, self.settings.seed, self.device)

    @cached_property
    def _validation(self) -> list[StressTest]:
        source = self.domain.calibrate
        return [StressTest(make_world(source, *self.domain.calibration, number)) for number in range(2)]

    @cached_property
    def _tests(self) -> dict[str, list[StressTest]]:
        return {
            name: [self._test(test, number) for number in range(self.worlds)]
            for name, test in self.domain.tests.items()
        }

    def _test(self, test: Test, number: int) -> StressTest:
        distractors = max(test.counts) - 2
        world = make_world(test.source, *self.domain.size, number, test.repeats, distractors)
        return StressTest(world, test.depths, test.counts)

    def missing(self, name: str, loss: str) -> str | None:
        """Return the key of a row that is not there yet."""
        key = f"{name}{f' ({loss})' if loss else ''}, {self.label}"
        return None if self.run.has(key) else key

    def _references(self, described: Callable[[], Described], of: str, loss: str) -> None:
        """Measure lifts, and every element kept in floats and in codes."""
        dim = self.settings.backbone.dim
        for recipe in LIFTS:
            if recipe.fits(dim) and (key := self.missing(recipe.name + of, loss)):
                rows, labels = described().sample
                head = SetNet(fit_head(recipe, rows.numpy(), labels.astype(np.str_)))
                facts: dict[str, object] = {"bytes": head.bytes_per_item}
                self.add(key, recipe.name + of, loss, SetVectors(head), described(), facts)
        for bits in (32, *CODE_BITS):
            name = (UPPER_BOUND if bits == 32 else code_name(bits).capitalize()) + of
            if key := self.missing(name, loss):
                facts = {"bytes_per_element": element_bytes(dim, bits)}
                facts |= described().orthogonality(None)
                self.add(key, name, loss, EveryElement(bits), described(), facts, bound=bits == 32)

    def rows_of(self, variant: Variant, loss: str) -> None:
        """Measure a variant as it is and whitened."""
        missing = {
            key: (name, place) for name, place in row_variants(variant) if (key := self.missing(name, loss))
        }
        of = f", of {variant.name}" if loss and variant.name in CLAIMED else ""
        if not missing and not (of and self.missing(LAST_REFERENCE + of, loss)):
            return
        self.check_backbone()
        variant = self.with_start(variant)
        rate = self.rate(variant, loss) if loss else None
        network = self.trained(variant, loss, rate)
        # Without set training a variant differs in its aggregator alone.
        described = self.baseline if rate is None else self.described(network)
        pooled = CachedPooling(network)
        for key, (name, place) in missing.items():
            kept = whiten_row(network, pooled, place, variant.size or 2, described)
            aggregator = NetworkAggregator(network, name)
            facts = {"bytes": aggregator.bytes_per_item} | described.orthogonality(aggregator)
            if rate is not None:
                facts["rate"] = rate
            if exponents := learned_exponents(network):
                facts["exponents"] = [min(exponents), max(exponents)]
            self.add(key, name, loss, kept, described, facts)
        if of:
            self._references(lambda: described, of, loss)

    def add(
        self,
        key: str,
        name: str,
        loss: str,
        kept: Representation,
        described: Described,
        facts: dict[str, object],
        bound: bool = False,
    ) -> None:
        """Calibrate what is kept of sets, measure it in all tests and keep the row."""
        self.say(f"measuring {key}")
        logistic = best_logistic(kept, described.validation[0])
        values: dict[str, list[float]] = {}
        draws: dict[str, list[float]] = {}
        for title, tests in described.tests.items():
            measured = measure_ranking(kept, tests, logistic)
            for name_of, ones in measured.values.items():
                by_world = np.reshape(ones, (len(tests), -1)).mean(axis=1)
                values[f"{name_of} {title}".rstrip()] = by_world.round(3).tolist()
                if not title and name_of.startswith(ndcg_name(DEPTHS[0], 0)[:-1]):  # the others would be 1 MB
                    draws[name_of] = np.round(measured.draws[name_of], 2).tolist()
        facts = {
            "row": name,
            "loss": loss,
            "seed": self.settings.seed,
            "dim": self.settings.backbone.dim,
            "backbone": self.settings.backbone.name,
            "w": logistic.w,
            "b": logistic.b,
        } | facts
        self.run.add(Row(key, values, facts, bound, draws))


def over_seeds(record: Record, kind: Kind | None = None) -> list[Row]:
    """Return one row per method; its values are lists over training seeds of lists over worlds.

    Of the methods of one kind (by default the first), and those without set training. All are about the same
    seeds: one that is half done is left out, and so is a method that another seed lacks.
    """
    kind = kind or kinds(record)[0]
    found: dict[str, dict[int, Row]] = {}
    for row in record.rows:
        if row.facts["loss"] in ("", kind[0]) and _kind(row)[1:] == kind[1:]:
            found.setdefault(row.facts["row"], {})[row.facts["seed"]] = row
    done = Counter(seed for rows in found.values() for seed in rows)
    seeds = [seed for seed, number in done.items() if number == max(done.values())]
    return [
        _joined(name, [rows[seed] for seed in seeds])
        for name, rows in found.items()
        if all(seed in rows for seed in seeds)
    ]


Kind = tuple[str, str, int]  # loss, backbone and dimension that networks were trained with


def _kind(row: Row) -> Kind:
    return row.facts["loss"], row.facts.get("backbone", ""), row.facts.get("dim", 0)


def kinds(record: Record) -> list[Kind]:
    """Return the kinds of a record's trainings, each once, in order."""
    found = [*dict.fromkeys(map(_kind, record.rows))]
    return [kind for kind in found if kind[0]] or found[:1] or [("", "", 0)]


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

    def __str__(self) -> str:
        error = "" if np.isnan(self.error) else f" ± {self.error:.1f}"  # none of one world and seed
        return f"{self.points:+.1f}{error} ({self.baseline})"


def leads(rows: Sequence[Row], name: str, test: str = "") -> list[Lead]:
    """Return the lead of a row over the pooled baseline that is best at each number of elements.

    The baseline is chosen after the fact, which favours it; the error is that of the differences, over
    people, worlds and seeds.
    """
    ours = next(row for row in rows if row.name == name)
    pooled = [row for row in rows if row.name.startswith("Baseline")]
    found = []
    for count in _counts(ours, test):
        key = ndcg_name(10, count, test)
        best = max(pooled, key=lambda row: row.estimate(key)[0])
        found.append(Lead(count, best.name, *ours.lead(best, key)))
    return found


def _counts(row: Row, test: str, depth: int = DEPTHS[0]) -> list[int]:
    """Return the numbers of elements that a row was measured with."""
    names = {count: ndcg_name(depth, count, test) for count in range(1, 100)}
    return [count for count, name in names.items() if name in row.values]


def tables(record: Record) -> list[Table]:
    """Return nDCG of every test, and leads over the best baseline."""
    note = (
        "Mean ± standard error over people, training seeds and test worlds. Bold: best by more than the "
        "error of its lead; what keeps every element is excluded. G_diff: of the tested identities, over "
        "that of random directions."
    )
    found = []
    for kind in kinds(record):
        rows = over_seeds(record, kind)
        tests = dict.fromkeys(["", *(key.partition(" ")[2] for key in (rows[0].values if rows else ()))])
        what = "" if kind == kinds(record)[0] else f", {kind[0]} loss, {kind[1]}, D_e = {kind[2]}"
        cells = [replace(row, facts={**row.facts, "size": _size(row)}, bound=_keeps_all(row)) for row in rows]
        for test in tests:
            for depth in (depth for depth in DEPTHS if rows and _counts(rows[0], test, depth)):
                columns = [Column("size", "bytes", fact=True), Column("gram", "G_diff", fact=True, digits=2)]
                columns += [
                    Column(ndcg_name(depth, count, test), f"{count} {record.settings['elements']}")
                    for count in _counts(rows[0], test, depth)
                ]
                title = f"Networks trained alike, nDCG@{depth}{what}{f', {test}' if test else ''}"
                found.append(result_table(title, cells, columns, note))
        found += [_lead_table(rows, test, what) for test in tests]
    return found


def _size(row: Row) -> str:
    each = row.facts.get("bytes_per_element")
    return f"{row.facts['bytes']:,}" if each is None else f"{each} per element"


def _keeps_all(row: Row) -> bool:
    return "bytes_per_element" in row.facts


def _lead_table(rows: Sequence[Row], test: str, what: str) -> Table:
    ours = [row.name for row in rows if row.name.startswith("SetNet") and "+ W" in row.name]
    counts = _counts(rows[0], test) if rows else FACES
    cells = tuple((name, *map(str, leads(rows, name, test))) for name in ours)
    title = f"Lead over the best pooled baseline, nDCG@10{what}{f', {test}' if test else ''}"
    held = [name for name in ours if name.startswith(CLAIMED) and is_reproduced(rows, name)]
    note = (
        f"The claim is that {CLAIMED} leads the best pooled baseline, trained with the same budget, at every "
        "number of elements by more than twice the standard error of its lead. Here: "
        f"{'reproduced by ' + ', '.join(held) if held else 'not reproduced in full'}."
    )
    return Table(title, ("method", *map(str, counts)), cells, note=note if rows and not test else "")


def is_reproduced(rows: Sequence[Row], name: str) -> bool:
    """Return whether a row leads at every number of elements by more than twice the error of its lead."""
    return all(lead.points > 2 * lead.error for lead in leads(rows, name) if lead.elements in FACES)


def write_claim(record: Record, page: Path) -> Path:
    """Put the tables of a record into a page."""
    subject = record.settings["elements"]
    title = f"The paper's claim on {subject}"
    return write_section(page, f"claim-{subject}", title, record, tables(record), "setnet train paper")
