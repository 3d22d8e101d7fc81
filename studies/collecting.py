"""An archive composed with known captions and people, and how well `setnet collect` labels it."""

from __future__ import annotations

import csv
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from setnet.collect import AnnotationQueue, Answer, CollectRun, Question, run_all
from setnet.collect.result import final_rows
from setnet.collect.search import name_pairs
from setnet.durable import storage_errors
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.settings import Settings as BaseSettings
from setnet.evaluate.settings import experiment, option, setting
from setnet.evaluate.tables import Column, Table, result_table
from studies.album import Album, Placed, compose_album
from studies.alterations import ALTERATIONS, altered

_TEMPLATES = (
    "{people} at the opening of the exhibition",
    "{people} attend the ceremony on Tuesday",
    "File photo: {people} during talks in the capital",
    "{people} pose for photographers before the premiere. Photo: staff",
    "From left: {people}",
    "Archive, 12 May 2003. {people} (seen here in an earlier photo) met again",
)
_LISTS = "{people}; press conference"


@dataclass(frozen=True)
class CaptionNoise:
    """How often captions are wrong.

    Attributes
    ----------
    missing
        Share of people in a photo whom its caption does not name.
    added
        Share of captions that name somebody who is not in the photo.
    misspelt
        Share of names with a letter lost, doubled or exchanged.
    shortened
        Share of names with initials, or without middle names.
    turned
        Share of captions that list people as "Last, First; Last, First".
    """

    missing: float = 0.15
    added: float = 0.1
    misspelt: float = 0.05
    shortened: float = 0.15
    turned: float = 0.1


def caption(
    people: Sequence[str], others: Sequence[str], noise: CaptionNoise, rng: np.random.Generator
) -> str:
    """Return a caption of a photo.

    Parameters
    ----------
    people
        Who is in the photo, from left to right.
    others
        People of whom one may be named although not in it.
    """
    named = [name for name in people if rng.random() >= noise.missing]
    if rng.random() < noise.added and others:
        named.insert(int(rng.integers(len(named) + 1)), others[int(rng.integers(len(others)))])
    turned = rng.random() < noise.turned
    written = [_written(name, turned, noise, rng) for name in named]
    if not written:
        return "Visitors at the fair"
    if turned:
        return _LISTS.format(people="; ".join(written))
    template = _TEMPLATES[int(rng.integers(len(_TEMPLATES)))]
    joined = ", ".join(written[:-1]) + (" and " if len(written) > 1 else "") + written[-1]
    return template.format(people=joined)


def _written(name: str, turned: bool, noise: CaptionNoise, rng: np.random.Generator) -> str:
    given, _, family = name.rpartition(" ")
    if given and rng.random() < noise.shortened:
        first = given.split()[0]
        given = f"{first[0]}." if rng.random() < 0.5 else first
    if rng.random() < noise.misspelt:
        family = _misspelt(family, rng)
    if not given:
        return family
    return f"{family}, {given}" if turned else f"{given} {family}"


def _misspelt(word: str, rng: np.random.Generator) -> str:
    """Return a word with a letter lost, doubled, or exchanged with the next."""
    at = int(rng.integers(1, max(2, len(word) - 1)))
    kind = int(rng.integers(3))
    if kind == 0:
        return word[:at] + word[at + 1 :]
    if kind == 1:
        return word[: at + 1] + word[at:]
    return word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :]


MOST_PORTRAITS = 5
COPIED = 0.15
_STREAM = 11


@dataclass(frozen=True)
class CaptionedArchive:
    """Folders for `setnet collect`, and the ground truth.

    Attributes
    ----------
    placed
        For each photo file, who stands where; of a planted copy, of the photo it was made from.
    copies
        Planted copies, with the file each was made from.
    names
        The people in the list; everybody else in a photo is a stranger.
    """

    portraits: Path
    photos: Path
    placed: Mapping[str, tuple[Placed, ...]]
    copies: Mapping[str, str]
    names: frozenset[str]

    def pairs(self) -> set[tuple[str, str]]:
        """Return the pairs of people of the list who are together in some photo."""
        found = set()
        for placed in self.placed.values():
            people = sorted({p.person for p in placed} & self.names)
            found |= {(a, b) for i, a in enumerate(people) for b in people[i + 1 :]}
        return found


def compose_archive(
    lfw: Path, lists: Path, folder: Path, count: int, noise: CaptionNoise, seed: int = 0
) -> CaptionedArchive:
    """Compose the photos of `compose_album` with captions, portraits and planted near-duplicates.

    The people of the list are those with four pictures or more: half of their pictures stand in photos, up to
    five others are portraits. Copies have the caption of another agency: other noise about the same people.
    """
    album = compose_album(lfw, lists, folder, count, seed)
    rng = np.random.default_rng((seed, _STREAM))
    photos, portraits = folder / "photos", folder / "portraits"
    with storage_errors(folder, "cannot compose an archive in "):
        for name, files in album.query_pictures.items():
            (portraits / name).mkdir(parents=True, exist_ok=True)
            for file in files[:MOST_PORTRAITS]:
                if not (portraits / file).is_file():  # written again it would be described again
                    shutil.copyfile(lfw / file, portraits / file)
        copies = _plant(album, photos, rng)
        names = sorted(name.replace("_", " ") for name in album.query_pictures)
        captions = {}
        for file in (*album.photos, *copies):
            placed = album.photos[copies.get(file, file)]
            people = [p.person.replace("_", " ") for p in sorted(placed, key=lambda p: p.x)]
            others = [name for name in names if name not in people]
            captions[file] = caption(people, others, noise, rng)
        with (photos / "captions.csv").open("w", encoding="utf-8", newline="") as table:
            csv.writer(table).writerows([("photo", "caption"), *captions.items()])
    placed_in = dict(album.photos) | {file: album.photos[source] for file, source in copies.items()}
    return CaptionedArchive(portraits, photos, placed_in, copies, frozenset(album.query_pictures))


def _plant(album: Album, photos: Path, rng: np.random.Generator) -> dict[str, str]:
    """Write altered copies of some photos, of every kind in turn; return what each was made from."""
    from PIL import Image

    sources = sorted(album.photos)
    chosen = rng.choice(len(sources), round(COPIED * len(sources)), replace=False)
    copies = {}
    for number, source in enumerate(sources[i] for i in np.sort(chosen).tolist()):
        kind = list(ALTERATIONS)[number % len(ALTERATIONS)]
        file = f"copy_{number:04}.jpg"
        copies[file] = source
        if not (photos / file).is_file():
            with Image.open(photos / source) as image:
                pixels = np.asarray(image.convert("RGB"))
            made = Image.fromarray(altered(pixels, kind, number))
            made.save(photos / file, quality=30 if "quality" in kind else 90)
    return copies


@dataclass(frozen=True)
class LabelQuality:
    """Counts of labels.

    Attributes
    ----------
    photos, faces
        What is in the data set.
    named
        Faces with a name.
    right
        Of these, faces whose name is true.
    known
        Faces of people of the list.
    unknown_right
        Faces called unknown that are of nobody in the list.
    """

    photos: int
    faces: int
    named: int
    right: int
    known: int
    unknown_right: int

    def to_dict(self) -> dict[str, float]:
        """Return the measures in percent."""
        unknown = self.faces - self.named
        return {
            "precision": 100 * self.right / max(1, self.named),
            "recall": 100 * self.right / max(1, self.known),
            "unknown": 100 * self.unknown_right / max(1, unknown),
            "accuracy": 100 * (self.right + self.unknown_right) / max(1, self.faces),
        }


def true_name(box: Sequence[float], placed: Iterable[Placed], names: frozenset[str]) -> str | None:
    """Return whose face a box is, as the list has the name; None for unknown people and for what is no face."""
    for each in placed:
        if box[0] <= each.x <= box[2] and box[1] <= each.y <= box[3]:
            return each.person.replace("_", " ") if each.person in names else None
    return None


def label_quality(rows: Iterable[Mapping[str, Any]], archive: CaptionedArchive) -> LabelQuality:
    """Compare rows of labels with the ground truth; planted copies, whose faces moved, are left out."""
    counts = dict.fromkeys(("photos", "faces", "named", "right", "known", "unknown_right"), 0)
    for row in rows:
        file = os.path.basename(row["photo"])
        if not row["kept"] or file in archive.copies:
            continue
        counts["photos"] += 1
        for face in row["faces"]:
            truth = true_name(face["box"], archive.placed[file], archive.names)
            counts["faces"] += 1
            counts["known"] += truth is not None
            counts["named"] += face["name"] is not None
            counts["right"] += face["name"] is not None and face["name"] == truth
            counts["unknown_right"] += face["name"] is None and truth is None
    return LabelQuality(**counts)


def true_answer(question: Question, archive: CaptionedArchive) -> Answer:
    """Return what somebody who knows everybody answers by the keys of the page.

    A person of the list who is not among the five names is not to be called unknown: the photo is dropped. So
    is a planted copy, in which nobody knows where people stand.
    """
    file = os.path.basename(question.photo)
    truth = true_name(question.box, archive.placed[file], archive.names)
    if file in archive.copies:
        return Answer("drop photo")
    if truth is None:
        return Answer("unknown")
    return Answer("name", truth) if truth in {each.name for each in question.best} else Answer("drop photo")


TITLE = "How good collected labels are"
ERROR = 0.03
RULES, DROPPED, KNOWS, ERRS = (
    "rules alone",
    "rules alone, photos with questions dropped",
    "with answers of somebody who knows",
    "with answers of which 3 % are wrong",
)


@dataclass(frozen=True, kw_only=True)
class Settings(BaseSettings):
    """`setnet collect` on photos composed of LFW pictures, with captions: pairs, copies, labels."""

    lfw: Path = field(
        metadata=option("LFW's folder of identities.", metavar="LFW", is_argument=True, counts=False)
    )
    lists: Path = field(metadata=option("LFW's multi_person_photos.json.", metavar="FILE.json", counts=False))
    work: Path = field(metadata=option("The archive and the run are kept here.", metavar="DIR", counts=False))
    count: int = setting(600, "Photos to compose; copies of some are planted among them.", minimum=10)
    detector: str = setting("mtcnn", "cascade, mtcnn or yunet.", metavar="MODEL")
    workers: int | None = setting(
        None, "Processes for photos [default: one per core].", metavar="N", minimum=0, counts=False
    )


@experiment("collect")
def run(run: Run, settings: Settings) -> None:
    """Collect a data set from composed photos with captions, and compare it with the ground truth."""
    work, seed = settings.work, settings.seed
    run.total = 8
    run.say("composing an archive")
    archive = compose_archive(
        settings.lfw, settings.lists, work / "archive", settings.count, CaptionNoise(), seed
    )
    collected = CollectRun.begin(
        work / "run",
        portraits=archive.portraits,
        photos=[archive.photos],
        detector=settings.detector,
        seed=seed,
    )
    started = monotonic()
    for report in run_all(collected, workers=settings.workers):
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
    _measure(run, collected, archive, work)


def _note_pairs(run: Run, collected: CollectRun, archive: CaptionedArchive) -> None:
    truth = {tuple(name.replace("_", " ") for name in pair) for pair in archive.pairs()}
    found = {(min(pair), max(pair)) for pair in name_pairs(collected)}
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


def _measure(run: Run, collected: CollectRun, archive: CaptionedArchive, work: Path) -> None:
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
        run.say(name)
        place = work / "answered"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(collected.path, place)
        copy = CollectRun.open(place)
        if answering is not None:
            answers = _answered(copy, answering)
            if answering is errs and answers:
                truth = [str(knows(question)) for question in asked.questions]
                run.note(kappa=round(cohens_kappa(truth, answers), 3))
        quality = label_quality(final_rows(copy, unanswered), archive)
        values = {key: [value] for key, value in quality.to_dict().items()}
        counts = {"photos": quality.photos, "faces": quality.faces, "named": quality.named}
        run.add(Row(name, values, facts | counts))


def cohens_kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Return Cohen's kappa of two labellings of the same things; 1 where both always say one thing.

    >>> round(cohens_kappa(["a", "a", "b", "b"], ["a", "a", "b", "a"]), 3)
    0.5
    """
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    counts = Counter(first), Counter(second)
    by_chance = sum(counts[0][label] * counts[1][label] for label in counts[0]) / n**2
    return 1.0 if by_chance == 1.0 else (observed - by_chance) / (1.0 - by_chance)


def _answered(run: CollectRun, answering: Callable[[Question], Answer]) -> list[str]:
    """Answer all questions of a run; return the answers in words."""
    queue = AnnotationQueue(run)
    given = []
    for number, question in enumerate(queue.questions):
        answer = answering(question)
        queue.answer(number, answer)
        given.append(str(answer))
    return given


def tables(record: Record) -> list[Table]:
    """Return what was collected, and how right its labels are."""
    columns = [Column(name, name, fact=True) for name in ("asked", "photos", "faces", "named")]
    columns += [
        Column("precision", "names right", digits=2),
        Column("recall", "people named", digits=2),
        Column("unknown", "unknown right", digits=2),
        Column("accuracy", "labels right", digits=2),
    ]
    note = (
        "Asked: faces left to a person. Percent, by who stands where: names right, of faces with a name; "
        "people named, of faces of people in the list; unknown right, of faces called unknown; labels "
        "right, of all."
    )
    extra = record.extra
    cells = (
        ("pairs of people", f"{extra['pairs_found']:,} found of {extra['pairs_true']:,}"),
        ("precision of pairs", f"{extra['pairs_precision']:.1f} %"),
        ("recall of pairs", f"{extra['pairs_recall']:.1f} %"),
        ("planted copies dropped", f"{extra['copies_found']:,} of {extra['copies']:,}"),
        ("other photos dropped as copies", f"{extra['dropped_wrongly']:,}"),
        ("Cohen's kappa of the two who answer", f"{extra['kappa']:.3f}" if "kappa" in extra else "-"),
    )
    return [
        Table("Collected from an archive with captions", ("", ""), cells),
        result_table("Labels of faces", record.rows, columns, note),
    ]


if __name__ == "__main__":
    from setnet.cli.evaluate import run_study

    run_study(sys.modules[__name__], "python -m studies.collecting")
