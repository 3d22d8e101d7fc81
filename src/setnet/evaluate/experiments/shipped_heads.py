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

from setnet.errors import one_of
from setnet.evaluate.data.labelled_people import Halves, LabelledPeople
from setnet.evaluate.data.splits import half_of
from setnet.evaluate.methods.ranking_calibration import best_logistic, calibrated, calibrated_elements
from setnet.evaluate.methods.stress_measure import StressResult, gap_closed, measured_elements, measured_sets
from setnet.evaluate.report.page import with_block
from setnet.evaluate.report.tables import Table
from setnet.evaluate.worlds.stress_world import StressWorld, stress_world
from setnet.learn import RECIPES, fit_head
from setnet.library import read_descriptors
from setnet.sets import Aggregator, Head, Mean, SetNet, path_of

CALIBRATION_SETS = 32_000
SHIPPED = path_of("sface-128").parent


@dataclass(frozen=True)
class HeadEvaluation:
    """The stress test on one kind of photos: mean pooling, descriptor per element, then every head."""

    photos: str
    sets: int
    results: tuple[StressResult, ...]

    def gap_closed(self, result: StressResult) -> NDArray[np.float64]:
        """Return the share of the gap between the first two results that `result` closes, in percent."""
        return gap_closed(result, self.results[0], self.results[1])

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

    Without `folder` they are those of the installed package. Figures go into the files of heads made in this
    call and of no others: an index knows its head by the content of the file.
    """
    for name in only:
        if name not in RECIPES:
            raise one_of("head", name, RECIPES)
    folder = folder or SHIPPED
    halves = [_halves(path) for path in (descriptors, *degraded)]
    made = [folder / f"{name}.safetensors" for name in only or RECIPES] if make else []
    folder.mkdir(parents=True, exist_ok=True)
    for path in made:
        say(f"making {path.stem}")
        make_head(path.stem, halves[0].train, [part.train for part in halves[1:]]).save(path)
    if not evaluate:
        return []
    kinds = ["as they are", *(f"degraded, {path.stem}" for path in degraded)]
    tests = {kind: part.test for kind, part in zip(kinds, halves, strict=True)}
    heads = [SetNet.load(path) for path in _heads_in(folder)]
    evaluations = evaluate_heads(heads, halves[0].train, tests, sets=sets, say=say)
    if card is not None:
        _record_figures(evaluations[0], made)
        write_card(evaluations, card, folder)
    return evaluations


def make_head(name: str, photos: LabelledPeople, degraded: Sequence[LabelledPeople] = ()) -> Head:
    """Return a shipped head made from labelled descriptors of training people, its (w, b) calibrated.

    ``degraded`` are further descriptors of the same people; the calibration looks at ``photos`` only.
    """
    parts = [photos, *degraded]
    rows = np.concatenate([part.descriptors for part in parts])
    head = fit_head(RECIPES[name], rows, np.concatenate([part.labels for part in parts]))
    return head.with_logistic(best_logistic(SetNet(head), _calibration_world(photos)))


def evaluate_heads(
    heads: Sequence[Aggregator],
    train: LabelledPeople,
    tests: Mapping[str, LabelledPeople],
    *,
    sets: int = 64_000,
    say: Callable[[str], None] = lambda text: None,
) -> list[HeadEvaluation]:
    """Return the stress test on each of `tests` (kind of photos: test people).

    Mean pooling and descriptor-per-element are calibrated on the training people like every head.
    """
    training = _calibration_world(train)
    bound, mean = calibrated_elements(training, relative=True), Mean(training.descriptors.shape[1])
    mean_logistic = calibrated(mean, training, relative=True)
    evaluations = []
    for photos, test in tests.items():
        say(f"evaluating on photos {photos}")
        world = stress_world(test.descriptors, test.labels, sets=sets)
        results = [
            measured_sets(mean, world, logistic=mean_logistic),
            measured_elements(world, logistic=bound),
        ]
        results += [measured_sets(head, world) for head in heads]
        evaluations.append(HeadEvaluation(photos, sets, tuple(results)))
    return evaluations


def write_card(evaluations: Sequence[HeadEvaluation], page: Path, folder: Path = SHIPPED) -> Path:
    """Put into `page` how the heads were made and how good they are; other text of the page stays."""
    lines = [
        "Generated by",
        "`setnet train heads LFW.npz --degraded coarse.npz --degraded shaken.npz --card docs/heads.md`;",
        "LFW.npz is what `setnet describe` makes of the LFW photos with the default face",
        "models, the others what it makes of degraded copies of the photos. People are divided once into",
        "halves (`src/setnet/evaluate/data/lfw_split.json`); heads are made, chosen and calibrated on the",
        "training half.",
        "",
        f"Stress test (section 5.1 of the paper) on the test half: {evaluations[0].sets:,} sets of two",
        "labelled faces and 0 to 3 distractors, 100 two-person queries, 10 repeats; nDCG@10 in percent ±",
        "standard error. Gap closed: (method - mean) / (descriptor per element - mean). Every (w, b) was",
        "chosen on the training half by ranking quality, on photos as they are.",
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


def _record_figures(evaluation: HeadEvaluation, made: Sequence[Path]) -> None:
    """Write their figures into newly made heads, so that they travel with the files."""
    results = {result.method: result for result in evaluation.results}
    for path in made:
        head = Head.load(path)
        result = results[head.name]
        figures = {
            "faces": list(result.faces),
            "gap_closed_percent": [round(float(share), 1) for share in evaluation.gap_closed(result)],
            "ndcg@10": [round(float(mean), 2) for mean in result.means],
        }
        replace(head, about={**head.about, "stress_lfw_test_half": figures}).save(path)


def _calibration_world(photos: LabelledPeople) -> StressWorld:
    return stress_world(photos.descriptors, photos.labels, sets=CALIBRATION_SETS, repeats=3, seed=1)


def _halves(path: Path) -> Halves:
    rows, labels = read_descriptors(path)
    halves = [half_of(labels, half) for half in ("train", "test")]
    train, test = (LabelledPeople(rows[half], labels[half]) for half in halves)
    return Halves(train, test, path.stem)


def _heads_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))
