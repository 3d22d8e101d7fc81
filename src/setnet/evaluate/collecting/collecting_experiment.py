"""The experiment on `setnet collect`: pairs, near-duplicates, labels before and after the queue."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import numpy as np

from setnet.collect import (
    AnnotationQueue,
    Answer,
    CollectRun,
    Question,
    calibrate_rules,
    cohens_kappa,
    final_rows,
    gallery,
    pairs_of,
    run_all,
    run_step,
)
from setnet.evaluate.collecting.captions import CaptionNoise
from setnet.evaluate.collecting.composed_archive import CaptionedArchive, compose_archive
from setnet.evaluate.collecting.label_measures import label_quality, true_answer
from setnet.evaluate.experiments.running import OnProgress, running
from setnet.evaluate.report.record import Record, Row, Run

ERROR = 0.03
RULES, DROPPED, KNOWS, ERRS = (
    "rules alone",
    "rules alone, photos with questions dropped",
    "with answers of somebody who knows",
    "with answers of which 3 % are wrong",
)
CALIBRATED = ", calibrated thresholds"


def collecting(
    lfw: Path,
    lists: Path,
    work: Path,
    *,
    count: int = 600,
    detector: str = "mtcnn",
    seed: int = 0,
    workers: int | None = None,
    json: Path | None = None,
    progress: OnProgress | None = None,
) -> Record:
    """Collect a data set from composed photos with captions, and compare it with the ground truth.

    Parameters
    ----------
    lfw, lists
        LFW's folder of identities, and its ``multi_person_photos.json``. Only people of the test half.
    work
        Folder of the archive and the run; made, or used again.
    count
        How many photos to compose; copies of some are planted among them.
    """
    settings = {"count": count, "detector": detector, "seed": seed}
    with running("collect", settings, json, progress, 8) as run:
        run.say("composing an archive")
        archive = compose_archive(lfw, lists, work / "archive", count, CaptionNoise(), seed)
        collected = CollectRun.begin(
            work / "run", portraits=archive.portraits, photos=[archive.photos], detector=detector, seed=seed
        )
        started = monotonic()
        for report in run_all(collected, workers=workers):
            run.say(f"{report.name}: {report.summary.kept:,} of {report.summary.rows:,} kept")
        run.note(
            world=f"{len(archive.placed):,} photos composed of LFW pictures of test-half people, with "
            f"captions; {len(archive.names)} names in the list",
            seconds=round(monotonic() - started, 1),
            photos=len(archive.placed),
            people=len(archive.names),
        )
        _note_pairs(run, collected, archive)
        _note_copies(run, collected, archive)
        _measure(run, collected, archive, work, "")
        found = calibrate_rules(gallery(collected), collected.settings.rules, collected.settings.strangers)
        suggested = {each.name: each.suggested for each in found.thresholds}
        run.note(thresholds=suggested)
        _measure(run, _relabelled(collected, work / "calibrated", suggested), archive, work, CALIBRATED)
    return run.record()


def _note_pairs(run: Run, collected: CollectRun, archive: CaptionedArchive) -> None:
    truth = {tuple(name.replace("_", " ") for name in pair) for pair in archive.pairs()}
    found = {(min(pair), max(pair)) for pair in pairs_of(collected)}
    right = len(found & {(min(pair), max(pair)) for pair in truth})
    run.note(
        pairs_true=len(truth),
        pairs_found=len(found),
        pairs_precision=round(100 * right / max(1, len(found)), 1),
        pairs_recall=round(100 * right / max(1, len(truth)), 1),
    )


def _note_copies(run: Run, collected: CollectRun, archive: CaptionedArchive) -> None:
    """Note how many planted copies were dropped of those whose original was there too, and what else was."""
    rows = {os.path.basename(row["photo"]): row for row in collected.manifest("duplicates").rows()}
    both = [(copy, source) for copy, source in archive.copies.items() if copy in rows and source in rows]
    caught = sum(not (rows[copy]["kept"] and rows[source]["kept"]) for copy, source in both)
    dropped = [file for file, row in rows.items() if not row["kept"]]
    family = {file: archive.copies.get(file, file) for file in rows}
    wrong = sum(family[file] != family.get(_of(rows[file]), "") for file in dropped)
    run.note(copies=len(both), copies_found=caught, dropped=len(dropped), dropped_wrongly=wrong)


def _of(row: dict[str, object]) -> str:
    return os.path.basename(str(row.get("detail", "")))


def _relabelled(collected: CollectRun, place: Path, thresholds: dict[str, float]) -> CollectRun:
    """Return a copy of a run, labelled anew with other thresholds."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(collected.path, place)
    copy = CollectRun.begin(place, **thresholds)
    run_step(copy, "labels")
    return copy


def _measure(run: Run, collected: CollectRun, archive: CaptionedArchive, work: Path, suffix: str) -> None:
    rng = np.random.default_rng(7)
    asked = AnnotationQueue(collected)

    def knows(question: Question) -> Answer:
        return true_answer(question, archive)

    def errs(question: Question) -> Answer:
        right = knows(question)
        if rng.random() >= ERROR:
            return right
        others = [Answer("unknown"), *(Answer("name", each.name) for each in question.best)]
        wrong = [answer for answer in others if answer != right]
        return wrong[int(rng.integers(len(wrong)))]

    facts = {"asked": len(asked.questions)}
    for name, answering, unanswered in (
        (RULES, None, "unknown"),
        (DROPPED, None, "drop"),
        (KNOWS, knows, "unknown"),
        (ERRS, errs, "unknown"),
    ):
        run.say(name + suffix)
        place = work / "answered"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(collected.path, place)
        copy = CollectRun.open(place)
        if answering is not None:
            answers = _answered(copy, answering)
            if answering is errs and answers:
                truth = [str(knows(question)) for question in asked.questions]
                run.note(**{f"kappa{suffix}": round(cohens_kappa(truth, answers), 3)})
        quality = label_quality(final_rows(copy, unanswered), archive)
        values = {key: [value] for key, value in quality.to_dict().items()}
        counts = {"photos": quality.photos, "faces": quality.faces, "named": quality.named}
        run.add(Row(name + suffix, values, facts | counts))


def _answered(run: CollectRun, answering: Callable[[Question], Answer]) -> list[str]:
    """Answer all questions of a run; return the answers in words."""
    queue = AnnotationQueue(run)
    given = []
    for number, question in enumerate(queue.questions):
        answer = answering(question)
        queue.answer("script", number, answer)
        given.append(str(answer))
    return given
