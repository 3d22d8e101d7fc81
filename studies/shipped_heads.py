"""Makes, calibrates and evaluates the heads that come with the package.

    python -m studies.shipped_heads LFW.npz --degraded coarse.npz --degraded shaken.npz --card FILE.md

Heads are made from the training half of LFW, from the photos as they are and from degraded copies
(`python -m studies.degrade`), calibrated on the photos as they are, and evaluated once on the test half.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from setnet.cli.options import argument, make_app, option
from setnet.cli.output import say
from setnet.errors import choice_error
from setnet.evaluate.people import LabelledPeople, TrainTestSplit, half_of
from setnet.evaluate.ranking_calibration import best_logistic
from setnet.evaluate.record import Row
from setnet.evaluate.report import with_block
from setnet.evaluate.representations import CODE_BITS, EveryElement, SetVectors, code_name, element_bytes
from setnet.evaluate.stress_trial import FACES, StressTest, measure_ranking, ndcg_name, stress_world
from setnet.evaluate.tables import Table
from setnet.faces import FaceSettings
from setnet.heads import Aggregator, Head, Mean, SetNet, unit
from setnet.heads.layers import Product
from setnet.heads.shipped import head_path
from setnet.library import read_descriptors
from setnet.train import RECIPES, fit_head
from studies.matching_faces import check_one_model

Floats = NDArray[np.float32]
CALIBRATION_SETS = 32_000
REPEATS = 10
SHIPPED = head_path("sface-128").parent
MEASURES = [ndcg_name(10, count) for count in FACES]


@dataclass(frozen=True)
class HeadEvaluation:
    """The stress test on one kind of photos: rows of mean pooling, upper bounds, element codes and heads."""

    photos: str
    sets: int
    rows: tuple[Row, ...]

    def gap_closed(self, row: Row) -> list[float]:
        """Return the share of the gap between mean pooling and the best bound closed, in percent."""
        return gap_closed(row, self.rows[0], [row for row in self.rows if row.bound])

    def table(self) -> Table:
        """Return the results with the share of the gap closed."""
        cells = tuple(
            (
                row.name,
                str(row.facts["bytes"]),
                *("{:.2f} ± {:.2f}".format(*row.estimate(key)) for key in MEASURES),
                " / ".join(f"{share:.0f}" for share in self.gap_closed(row)),
            )
            for row in self.rows
        )
        faces = (f"{count} faces" for count in FACES)
        return Table(f"Photos {self.photos}", ("method", "bytes", *faces, "gap closed, %"), cells)


def gap_closed(row: Row, mean: Row, bounds: Sequence[Row]) -> list[float]:
    """Return the share of the gap between two rows' nDCG that a third closes, in percent; NaN for no gap."""
    closed = []
    for key in MEASURES:
        own, lowest = (one.estimate(key)[0] for one in (row, mean))
        gap = max(bound.estimate(key)[0] for bound in bounds) - lowest
        closed.append(100.0 * (own - lowest) / gap if gap else float("nan"))
    return closed


app = make_app()


@app.command()
def heads(
    data: Annotated[Path, argument("LFW.npz", "Descriptor file of LFW.")],
    degraded: Annotated[
        list[Path] | None,
        option("Descriptors of degraded copies of the photos; repeatable.", metavar="FILE.npz"),
    ] = None,
    only: Annotated[
        list[str] | None, option("Make this head; repeatable [default: all].", metavar="NAME")
    ] = None,
    evaluate_only: Annotated[bool, option("Make none; evaluate the heads as they are.")] = False,
    make_only: Annotated[bool, option("Do not evaluate.")] = False,
    card: Annotated[Path | None, option("Put the figures into this page.", metavar="FILE.md")] = None,
    sets: Annotated[int, option("Sets of the stress test.", min=100, metavar="N")] = 64_000,
    out: Annotated[Path, option("Folder of the heads.", metavar="DIR")] = SHIPPED,
) -> None:
    """Make the heads that come with setnet from LFW's training half; evaluate them on its test half.

    With a card, the figures go into the heads' files too; indexes know a head by its file as it was made, and
    stay valid.
    """
    degraded = degraded or []
    for name in only or ():
        if name not in RECIPES:
            raise choice_error("head", name, RECIPES)
    made_by = check_one_model([data, *degraded]) or FaceSettings().descriptor
    halves = [_halves(path) for path in (data, *degraded)]
    made = [] if evaluate_only else [out / f"{name}.safetensors" for name in only or RECIPES]
    out.mkdir(parents=True, exist_ok=True)
    for path in made:
        say(f"making {path.stem}")
        head = make_head(path.stem, halves[0].train, [part.train for part in halves[1:]])
        replace(head, descriptor=made_by).save(path)
    if make_only:
        return
    kinds = ["as they are", *(f"degraded, {path.stem}" for path in degraded)]
    tests = {kind: part.test for kind, part in zip(kinds, halves, strict=True)}
    evaluations = evaluate_heads([SetNet.load(path) for path in _heads_in(out)], halves[0].train, tests, sets)
    if card is not None:
        _record_figures(evaluations[0], out)
        write_card(evaluations, card, out)
    for evaluation in evaluations:
        typer.echo(evaluation.table().markdown())


def make_head(name: str, photos: LabelledPeople, degraded: Sequence[LabelledPeople] = ()) -> Head:
    """Return a shipped head made from labelled descriptors of training people, its (w, b) calibrated.

    ``degraded`` are further descriptors of the same people; the calibration looks at ``photos`` only.
    """
    parts = [photos, *degraded]
    rows = np.concatenate([part.descriptors for part in parts])
    head = fit_head(RECIPES[name], rows, np.concatenate([part.labels for part in parts]))
    return head.with_logistic(best_logistic(SetVectors(SetNet(head)), _calibration_test(photos)))


def evaluate_heads(
    heads: Sequence[Aggregator],
    train: LabelledPeople,
    tests: Mapping[str, LabelledPeople],
    sets: int,
) -> list[HeadEvaluation]:
    """Return the stress test on each of `tests` (kind of photos: test people).

    Everything is calibrated on the training people in the same way, heads too. Lifts weight directions by
    their reliability, so that an upper bound with these weights stands beside the descriptors as they are.
    """
    fitting = _calibration_test(train)
    dim, mean = train.dim, Mean(train.dim)
    elements = {"descriptor per element": EveryElement()}
    weighted = _discriminant_of(heads)
    if weighted:
        elements["descriptor per element, weighted"] = EveryElement(32, weighted)
    elements |= {code_name(bits): EveryElement(bits) for bits in CODE_BITS}
    if weighted:
        elements[f"{code_name(1)}, weighted"] = EveryElement(1, weighted)
    kept: dict[str, SetVectors | EveryElement] = {mean.name: SetVectors(mean)} | elements
    kept |= {head.name: SetVectors(head) for head in heads}
    logistics = {name: best_logistic(one, fitting) for name, one in kept.items()}
    evaluations = []
    for photos, test in tests.items():
        say(f"evaluating on photos {photos}")
        world = stress_world(test.descriptors, test.labels, sets=sets, repeats=REPEATS)
        rows = []
        for name, one in kept.items():
            measured = measure_ranking(one, [StressTest(world)], logistics[name])
            bound = isinstance(one, EveryElement) and one.bits == 32
            rows.append(Row(name, measured.values, {"bytes": _bytes(one, dim)}, bound, measured.draws))
        evaluations.append(HeadEvaluation(photos, sets, tuple(rows)))
    return evaluations


def _bytes(kept: SetVectors | EveryElement, dim: int) -> int:
    if isinstance(kept, SetVectors):
        return kept.aggregator.bytes_per_item
    return int(np.mean(FACES) * element_bytes(dim, kept.bits))


def _discriminant_of(heads: Sequence[Aggregator]) -> Callable[[Floats], Floats] | None:
    """Return the weighted directions inside the widest lift, as a change of single descriptors."""
    lifts = [net.head for net in heads if isinstance(net, SetNet) and len(net.head.branches) == 2]
    for head in sorted(lifts, key=lambda head: -head.dim):
        plain = head.branches[1]
        if isinstance(plain, Product) and len(plain.factors) == 1:
            axes = plain.factors[0]
            return lambda rows: unit(head.input.apply(rows) @ axes)
    return None


def write_card(evaluations: Sequence[HeadEvaluation], page: Path, folder: Path) -> Path:
    """Put into `page` how the heads were made and how good they are; other text of the page stays."""
    lines = [
        "Generated by",
        "`python -m studies.shipped_heads LFW.npz --degraded coarse.npz --degraded shaken.npz --card FILE.md`;",
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
    rows = {row.name: row for row in evaluation.rows}
    for path in _heads_in(folder):
        net = SetNet.load(path)
        head, row = net.head, rows[net.name]
        figures = {
            "faces": list(FACES),
            "gap_closed_percent": [round(share, 1) for share in evaluation.gap_closed(row)],
            "ndcg@10": [round(row.estimate(key)[0], 2) for key in MEASURES],
        }
        about = {**head.about, "stress_lfw_test_half": figures, "fingerprint": net.fingerprint}
        replace(head, about=about).save(path)


def _calibration_test(photos: LabelledPeople) -> StressTest:
    world = stress_world(photos.descriptors, photos.labels, sets=CALIBRATION_SETS, repeats=3, seed=1)
    return StressTest(world)


def _halves(path: Path) -> TrainTestSplit:
    rows, labels = read_descriptors(path)
    halves = [half_of(labels, half) for half in ("train", "test")]
    train, test = (LabelledPeople(rows[half], labels[half]) for half in halves)
    return TrainTestSplit(train, test, path.stem)


def _heads_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


if __name__ == "__main__":
    from setnet.cli.app import run

    run(app, "python -m studies.shipped_heads")
