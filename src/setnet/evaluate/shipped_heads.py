"""Makes, calibrates and evaluates the heads that come with the package (`setnet train heads`).

Heads are made from the training half of LFW, from the photos as they are and from degraded copies
(`setnet evaluate degrade`), calibrated on the photos as they are, and evaluated once on the test half.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import choice_error
from setnet.evaluate.methods import CODE_BITS, code_name, coded_elements, element_bytes
from setnet.evaluate.people import Halves, LabelledPeople, half_of
from setnet.evaluate.ranking_calibration import calibrated, calibrated_elements
from setnet.evaluate.report import with_block
from setnet.evaluate.stress_trial import (
    StressResult,
    StressWorld,
    gap_closed,
    measured_elements,
    measured_sets,
    stress_world,
)
from setnet.evaluate.tables import Table
from setnet.faces import FaceSettings
from setnet.heads import Aggregator, Head, Logistic, Mean, SetNet, unit
from setnet.heads.layers import Product
from setnet.heads.shipped import head_path
from setnet.library import read_descriptors
from setnet.library.descriptor_files import refuse_two_models
from setnet.train import RECIPES, fit_head

Floats = NDArray[np.float32]
CALIBRATION_SETS = 32_000
REPEATS = 10
SHIPPED = head_path("sface-128").parent


@dataclass(frozen=True)
class HeadEvaluation:
    """The stress test on one kind of photos.

    Attributes
    ----------
    mean, bounds
        Mean pooling, and what keeps every descriptor in floats.
    others
        Element codes and heads.
    """

    photos: str
    sets: int
    mean: StressResult
    bounds: tuple[StressResult, ...]
    others: tuple[StressResult, ...]

    @property
    def results(self) -> tuple[StressResult, ...]:
        """All results in the order of the table."""
        return (self.mean, *self.bounds, *self.others)

    def gap_closed(self, result: StressResult) -> NDArray[np.float64]:
        """Return the share of the gap between mean pooling and the best bound closed, in percent."""
        return gap_closed(result, self.mean, self.bounds)

    def table(self) -> Table:
        """Return the results with the share of the gap closed."""
        cells = tuple(
            (
                result.method,
                str(result.bytes_per_item),
                *(f"{m:.2f} ± {e:.2f}" for m, e in zip(result.means, result.errors, strict=True)),
                " / ".join(f"{share:.0f}" for share in self.gap_closed(result)),
            )
            for result in self.results
        )
        faces = (f"{count} faces" for count in self.results[0].faces)
        return Table(f"Photos {self.photos}", ("method", "bytes", *faces, "gap closed, %"), cells)


def train_heads(
    descriptors: Path,
    degraded: Sequence[Path] = (),
    *,
    only: Sequence[str] = (),
    make: bool = True,
    evaluate: bool = True,
    card: Path | None = None,
    sets: int = 64_000,
    folder: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[HeadEvaluation]:
    """Make the heads called `only` (all by default) into `folder`, evaluate all there, write their card.

    Without `folder` they are those of the installed package. With a card, the figures go into the heads'
    files too; indexes know a head by its file as it was made, and stay valid.
    """
    for name in only:
        if name not in RECIPES:
            raise choice_error("head", name, RECIPES)
    folder = folder or SHIPPED
    made_by = refuse_two_models([descriptors, *degraded]) or FaceSettings().descriptor
    halves = [_halves(path) for path in (descriptors, *degraded)]
    made = [folder / f"{name}.safetensors" for name in only or RECIPES] if make else []
    folder.mkdir(parents=True, exist_ok=True)
    for path in made:
        say(f"making {path.stem}")
        head = make_head(path.stem, halves[0].train, [part.train for part in halves[1:]])
        replace(head, descriptor=made_by).save(path)
    if not evaluate:
        return []
    kinds = ["as they are", *(f"degraded, {path.stem}" for path in degraded)]
    tests = {kind: part.test for kind, part in zip(kinds, halves, strict=True)}
    heads = [SetNet.load(path) for path in _heads_in(folder)]
    evaluations = evaluate_heads(heads, halves[0].train, tests, sets=sets, say=say)
    if card is not None:
        _record_figures(evaluations[0], folder)
        write_card(evaluations, card, folder)
    return evaluations


def make_head(name: str, photos: LabelledPeople, degraded: Sequence[LabelledPeople] = ()) -> Head:
    """Return a shipped head made from labelled descriptors of training people, its (w, b) calibrated.

    ``degraded`` are further descriptors of the same people; the calibration looks at ``photos`` only.
    """
    parts = [photos, *degraded]
    rows = np.concatenate([part.descriptors for part in parts])
    head = fit_head(RECIPES[name], rows, np.concatenate([part.labels for part in parts]))
    return head.with_logistic(calibrated(SetNet(head), _calibration_world(photos)))


def evaluate_heads(
    heads: Sequence[Aggregator],
    train: LabelledPeople,
    tests: Mapping[str, LabelledPeople],
    *,
    sets: int = 64_000,
    say: Callable[[str], None] = lambda text: None,
) -> list[HeadEvaluation]:
    """Return the stress test on each of `tests` (kind of photos: test people).

    Everything is calibrated on the training people in the same way, heads too. Lifts weight directions by
    their reliability, so that an upper bound with these weights stands beside the descriptors as they are.
    """
    training = _calibration_world(train)
    pooled: list[Aggregator] = [Mean(train.dim), *heads]
    set_logistics = [calibrated(one, training) for one in pooled]
    kept = [_Kept("descriptor per element", 32), *(_Kept(code_name(bits), bits) for bits in CODE_BITS)]
    if weighted := _discriminant_of(heads):
        kept.insert(1, _Kept("descriptor per element, weighted", 32, weighted))
        kept.append(_Kept(f"{code_name(1)}, weighted", 1, weighted))
    logistics = [one.calibrated(training) for one in kept]
    evaluations = []
    for photos, test in tests.items():
        say(f"evaluating on photos {photos}")
        world = stress_world(test.descriptors, test.labels, sets=sets, repeats=REPEATS)
        elements = [one.measured(world, score) for one, score in zip(kept, logistics, strict=True)]
        bounds = [result for one, result in zip(kept, elements, strict=True) if one.bits == 32]
        others = [result for one, result in zip(kept, elements, strict=True) if one.bits < 32]
        mean, *of_heads = (
            measured_sets(one, world, logistic=score)
            for one, score in zip(pooled, set_logistics, strict=True)
        )
        evaluations.append(HeadEvaluation(photos, sets, mean, tuple(bounds), (*others, *of_heads)))
    return evaluations


@dataclass(frozen=True)
class _Kept:
    """Every face kept, at so many bits per dimension, after a change of its descriptor."""

    name: str
    bits: int
    change: Callable[[Floats], Floats] = unit

    def calibrated(self, world: StressWorld) -> Logistic:
        return calibrated_elements(world, change=self.change, stored=coded_elements(self.bits))

    def measured(self, world: StressWorld, logistic: Logistic) -> StressResult:
        size = element_bytes(world.descriptors.shape[1], self.bits)
        return measured_elements(
            world,
            logistic=logistic,
            name=self.name,
            bytes_per_face=size,
            change=self.change,
            stored=coded_elements(self.bits),
        )


def _discriminant_of(heads: Sequence[Aggregator]) -> Callable[[Floats], Floats] | None:
    """Return the weighted directions inside the widest lift, as a change of single descriptors."""
    lifts = [net.head for net in heads if isinstance(net, SetNet) and len(net.head.branches) == 2]
    for head in sorted(lifts, key=lambda head: -head.dim):
        plain = head.branches[1]
        if isinstance(plain, Product) and len(plain.factors) == 1:
            axes = plain.factors[0]
            return lambda rows: unit(head.input.apply(rows) @ axes)
    return None


def write_card(evaluations: Sequence[HeadEvaluation], page: Path, folder: Path = SHIPPED) -> Path:
    """Put into `page` how the heads were made and how good they are; other text of the page stays."""
    lines = [
        "Generated by",
        "`setnet train heads LFW.npz --degraded coarse.npz --degraded shaken.npz --card FILE.md`;",
        "LFW.npz is what `setnet describe` makes of the LFW photos with the default face",
        "models, the others what it makes of degraded copies of the photos. People are divided once into",
        "halves (`src/setnet/evaluate/data/lfw_split.json`); heads are made, chosen and calibrated on the",
        "training half.",
        "",
        f"Stress test (section 5.1 of the paper) on the test half: {evaluations[0].sets:,} sets of two",
        f"labelled faces and 0 to 3 distractors, 100 two-person queries, {REPEATS} faces of each query",
        "person; nDCG@10 in percent ± standard error over people. Gap closed: (method - mean) / (best upper",
        "bound - mean). The upper bounds keep every descriptor in floats, as it is and weighted by the",
        "reliable directions that the lifts contain. Every (w, b) was chosen on the training half in the",
        "same way, on photos as they are. Bytes of what keeps every element are those of 3.5 faces.",
        "",
        *(evaluation.table().markdown() for evaluation in evaluations),
    ]
    for path in _heads_in(folder):
        head = Head.load(path)
        lines += [
            f"## {head.name}",
            "",
            f"{head.about['summary']}; for {head.element_dim}-D {head.descriptor} descriptors.",
            "",
            f"- {head.dim} dimensions at {head.bits} bits: {SetNet(head).bytes_per_item} bytes per item",
            f"- made from: {head.about['trained_on']}",
            f"- recipe: {json.dumps(head.about['recipe'], sort_keys=True)}",
            f"- logistic: w = {head.logistic.w:.4g}, b = {head.logistic.b:.4g}",
            f"- file: {path.stat().st_size / 1e6:.2f} MB",
            "",
        ]
    text = page.read_text(encoding="utf-8") if page.is_file() else "# The heads that come with setnet\n"
    page.write_text(with_block(text, "train heads", "\n".join(lines)), encoding="utf-8")
    return page


def _record_figures(evaluation: HeadEvaluation, folder: Path) -> None:
    """Write their figures into the heads' files, which stay the same heads to an index."""
    results = {result.method: result for result in evaluation.results}
    for path in _heads_in(folder):
        net = SetNet.load(path)
        head, result = net.head, results[net.name]
        figures = {
            "faces": list(result.faces),
            "gap_closed_percent": [round(float(share), 1) for share in evaluation.gap_closed(result)],
            "ndcg@10": [round(float(mean), 2) for mean in result.means],
        }
        about = {**head.about, "stress_lfw_test_half": figures, "fingerprint": net.fingerprint}
        replace(head, about=about).save(path)


def _calibration_world(photos: LabelledPeople) -> StressWorld:
    return stress_world(photos.descriptors, photos.labels, sets=CALIBRATION_SETS, repeats=3, seed=1)


def _halves(path: Path) -> Halves:
    rows, labels = read_descriptors(path)
    halves = [half_of(labels, half) for half in ("train", "test")]
    train, test = (LabelledPeople(rows[half], labels[half]) for half in halves)
    return Halves(train, test, path.stem)


def _heads_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))
