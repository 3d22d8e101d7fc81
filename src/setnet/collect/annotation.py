"""The part of a person: faces that the rules leave open, the answers, and how annotators agree."""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

from setnet.collect.faces import known_names
from setnet.collect.rules import NamedScore, Outcome
from setnet.collect.run import CollectRun
from setnet.durable import append_durably, storage_errors
from setnet.errors import InvalidInputError, StorageError

NAME, UNKNOWN, DROP = "name", "unknown", "drop photo"
ANSWERS = (NAME, UNKNOWN, DROP)
_LOG = "answers.jsonl"
_LONGEST_ANNOTATOR = 100


@dataclass(frozen=True, slots=True)
class Question:
    """A face whose name a person decides.

    Attributes
    ----------
    photo, number
        The photo, and which face of it, counted from 1.
    box
        Where the face is.
    size
        Width and height of the photo.
    text, query
        The photo's text, and the names it was searched for.
    best
        The names with the highest scores, highest first.
    rule
        Why it is asked.
    """

    photo: str
    number: int
    box: tuple[float, ...]
    size: tuple[int, int]
    text: str
    query: tuple[str, ...]
    best: tuple[NamedScore, ...]
    rule: str

    def to_dict(self) -> dict[str, Any]:
        """Return the question as values that JSON can hold."""
        made = asdict(self)
        width, height = made.pop("size")
        del made["photo"]
        return made | {"width": width, "height": height}


def questions(run: CollectRun) -> list[Question]:
    """Return all questions of a run, in the order of its photos."""
    return [
        Question(
            row["photo"],
            number,
            tuple(face["box"]),
            (row["width"], row["height"]),
            row["text"],
            tuple(row["query"]),
            tuple(NamedScore(name, score) for name, score in face["best"]),
            face["rule"],
        )
        for row in run.manifest("labels").kept_rows()
        for number, face in enumerate(row["faces"], 1)
        if face["outcome"] == Outcome.ASK
    ]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says of a face: a name, that it is nobody of the list, or that the photo is no good."""

    kind: str
    name: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ANSWERS or (self.kind == NAME) != (self.name is not None):
            raise InvalidInputError(
                f"answer {self.kind!r} with name {self.name!r}: a name, 'unknown' or 'drop photo' is expected"
            )

    def __str__(self) -> str:
        return self.name if self.name is not None else self.kind


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer as it is stored; ``undone`` once it was taken back."""

    number: int
    time: str
    annotator: str
    photo: str
    face: int
    box: tuple[float, ...]
    answer: Answer
    undone: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as values that JSON can hold."""
        made = asdict(self)
        answer = made.pop("answer")
        return made | {"answer": answer["kind"], "name": answer["name"], "box": list(self.box)}


class DecisionLog:
    """All answers of a run in the order they were given, those taken back included.

    Answers are appended to a file one by one, are on the disk before they count, and are never overwritten.
    One process at a time may add to it: hold the run's lock ``answers``.
    """

    def __init__(self, run: CollectRun) -> None:
        self.path = run.path / _LOG
        self.decisions: list[Decision] = []
        self._current: dict[tuple[str, str, int], Decision] = {}
        with storage_errors(self.path):
            lines = self.path.read_bytes().splitlines(keepends=True) if self.path.is_file() else []
            if lines and not lines[-1].endswith(b"\n"):
                # Cut short by a kill or a full disk, so nobody was told that it is stored.
                os.truncate(self.path, sum(map(len, lines[:-1])))
                lines.pop()
        for number, line in enumerate(lines, 1):
            try:
                self._replay(json.loads(line))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise StorageError(
                    f"{self.path}, line {number}: no answer ({error!r}); delete that line"
                ) from error

    def _replay(self, row: dict[str, Any]) -> None:
        if "undo" in row:
            self._take_back(row["undo"])
            return
        answer = Answer(row["answer"], row.get("name"))
        number, box = len(self.decisions), tuple(row["box"])
        made = Decision(number, row["time"], row["annotator"], row["photo"], row["face"], box, answer)
        self.decisions.append(made)
        self._current[made.annotator, made.photo, made.face] = made

    def _take_back(self, number: int) -> None:
        undone = self.decisions[number] = replace(self.decisions[number], undone=True)
        self._current.pop((undone.annotator, undone.photo, undone.face), None)

    def add(self, annotator: str, question: Question, answer: Answer) -> Decision:
        """Store an answer in place of an earlier one of the same person; return it once it is on the disk."""
        row = {
            "time": _now(),
            "annotator": annotator,
            "photo": question.photo,
            "face": question.number,
            "box": list(question.box),
            "answer": answer.kind,
            "name": answer.name,
        }
        self._append(row)
        self._replay(row)
        return self.decisions[-1]

    def undo(self, annotator: str) -> Decision | None:
        """Take back the latest answer of a person that is not taken back; return it."""
        latest = next(
            (d for d in reversed(self.decisions) if d.annotator == annotator and not d.undone), None
        )
        if latest is not None:
            self._append({"time": _now(), "annotator": annotator, "undo": latest.number})
            self._take_back(latest.number)
        return latest

    def _append(self, row: dict[str, Any]) -> None:
        with storage_errors(self.path, "the answer is not stored: "):
            if not self.path.is_file():
                self.path.touch(mode=0o600)
            size = self.path.stat().st_size
            try:
                append_durably(self.path, json.dumps(row).encode() + b"\n")
            except OSError:
                os.truncate(self.path, size)  # a full disk keeps part of a line
                raise

    def current(self) -> Iterator[Decision]:
        """Yield the answers that stand."""
        yield from self._current.values()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many faces there are to answer, how many are answered, and how many by this person."""

    questions: int
    answered: int
    own: int


class AnnotationQueue:
    """The faces of a run that a person has to name, and their answers; no face is asked twice.

    Parameters
    ----------
    twice
        Share of the faces that are asked of a second person too, so that agreement can be measured.
    """

    def __init__(self, run: CollectRun, twice: float = 0.0) -> None:
        if not run.manifest("labels").exists:
            raise InvalidInputError(
                f"the faces of {run.path} are not labelled yet: `setnet collect run {run.path}`"
            )
        self.run, self.twice = run, twice
        self.questions = questions(run)
        self.names = tuple(known_names(run))
        self._numbers = {(each.photo, each.number): number for number, each in enumerate(self.questions)}
        self.log = DecisionLog(run)
        self._answers: dict[int, dict[str, Decision]] = defaultdict(dict)  # by question, then annotator
        self._dropped: set[str] = set()
        self._count()

    def _count(self) -> None:
        self._answers.clear()
        self._dropped.clear()
        for decision in self.log.current():
            self._note(decision)

    def _note(self, decision: Decision) -> None:
        number = self.find_number(decision.photo, decision.face)
        if number is None or self.questions[number].box != decision.box:
            return  # of faces that were found by other settings
        self._answers[number][decision.annotator] = decision
        if decision.answer.kind == DROP:
            self._dropped.add(decision.photo)

    def next(self, annotator: str) -> int | None:
        """Return the number of the next question for a person; None when nothing is left."""
        _check_annotator(annotator)
        numbers = range(len(self.questions))
        return next((number for number in numbers if self._is_open(number, annotator)), None)

    def _is_open(self, number: int, annotator: str) -> bool:
        question, answers = self.questions[number], self._answers.get(number)
        if question.photo in self._dropped:
            return False
        if not answers:
            return True
        return annotator not in answers and len(answers) == 1 and _share(question) < self.twice

    def answer(self, annotator: str, number: int, answer: Answer) -> Decision:
        """Store what a person says of a question."""
        _check_annotator(annotator)
        if not 0 <= number < len(self.questions):
            raise InvalidInputError(f"no question {number}: there are {len(self.questions)}")
        if answer.kind == NAME and answer.name not in self.names:
            raise InvalidInputError(f"{answer.name!r} is not in the list of names")
        decision = self.log.add(annotator, self.questions[number], answer)
        self._note(decision)
        return decision

    def undo(self, annotator: str) -> int | None:
        """Take back a person's latest answer; return the number of its question, which is asked again."""
        _check_annotator(annotator)
        taken = self.log.undo(annotator)
        self._count()
        return None if taken is None else self.find_number(taken.photo, taken.face)

    def state(self, annotator: str = "") -> QueueState:
        """Return how far the queue is."""
        done = sum(each.photo in self._dropped or n in self._answers for n, each in enumerate(self.questions))
        own = sum(annotator in answers for answers in self._answers.values())
        return QueueState(len(self.questions), done, own)

    def find_number(self, photo: str, face: int) -> int | None:
        """Return the number of the question about a face, if it is asked."""
        return self._numbers.get((photo, face))

    def has_answer(self, number: int, annotator: str) -> bool:
        """Return whether a person has answered a question."""
        return annotator in self._answers.get(number, {})


def _check_annotator(name: str) -> None:
    if not name or len(name) > _LONGEST_ANNOTATOR or not name.isprintable():
        raise InvalidInputError(f"annotator {name!r}: 1 to {_LONGEST_ANNOTATOR} printable characters")


def _share(question: Question) -> float:
    """Return a number from 0 to 1 that is always the same for a face."""
    face = f"{question.photo}#{question.number}"
    return zlib.crc32(face.encode("utf-8", "surrogatepass")) / 2**32


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a file of answers: how many were stored, known already, or about no face that is asked."""

    stored: int
    known: int
    not_asked: int


def import_answers(queue: AnnotationQueue, path: Path, annotator: str) -> Imported:
    """Store the answers of a file for the faces that are asked; those a person gave already are left out.

    The file has a JSON object per line, as a run's own ``answers.jsonl``: ``photo``, ``face`` (counted from
    1), ``answer`` (``name``, ``unknown`` or ``drop photo``) and ``name``; ``annotator`` where it is not the
    one given. A photo is found by its path or the end of it. ``undo`` takes back the answer of that number.
    """
    by_name: dict[str, set[str]] = defaultdict(set)
    for question in queue.questions:
        by_name[Path(question.photo).name].add(question.photo)
    counts: Counter[str] = Counter()
    for line, row in _read_answers(path):
        try:
            photo, face = _find_photo(str(row["photo"]), by_name), int(row["face"])
            kind, who = str(row["answer"]), str(row.get("annotator") or annotator)
            answer = Answer(kind, row["name"]) if kind == NAME else Answer(kind)
        except (KeyError, ValueError, TypeError) as error:
            raise InvalidInputError(
                f"{path}, line {line}: no answer ({error}); expected photo, face, name, "
                f"and answer ({', '.join(ANSWERS)})"
            ) from error
        number = None if photo is None else queue.find_number(photo, face)
        if number is None:
            counts["not_asked"] += 1
        elif queue.has_answer(number, who):
            counts["known"] += 1
        else:
            queue.answer(who, number, answer)
            counts["stored"] += 1
    return Imported(counts["stored"], counts["known"], counts["not_asked"])


def _read_answers(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the answers that stand, with their lines."""
    try:
        lines = enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1)
        rows = [(number, json.loads(line)) for number, line in lines if line.strip()]
        undone = {row["undo"] for _, row in rows if "undo" in row}
        given = [each for each in rows if "undo" not in each[1]]
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInputError(f"{path}: cannot be read as a file of answers ({error})") from error
    return [each for number, each in enumerate(given) if number not in undone]


def _find_photo(path: str, by_name: Mapping[str, set[str]]) -> str | None:
    """Return the photo that a path, or the end of one, means."""
    photos = by_name.get(Path(path).name, set())
    if path in photos:
        return path
    found = sorted(photo for photo in photos if photo.endswith("/" + path))
    if len(found) > 1:
        raise ValueError(f"{path} could be {found[0]} or {found[1]}")
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often two people gave the same answer, and Cohen's kappa: 0 as by chance, 1 always."""

    first: str
    second: str
    faces: int
    agreed: int
    kappa: float


def cohens_kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Return Cohen's kappa of two people's labels of the same things; 1 where both always say one thing.

    >>> round(cohens_kappa(["a", "a", "b", "b"], ["a", "a", "b", "a"]), 3)
    0.5
    """
    n = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    counts = Counter(first), Counter(second)
    by_chance = sum(counts[0][label] * counts[1][label] for label in counts[0]) / n**2
    return 1.0 if by_chance == 1.0 else (observed - by_chance) / (1.0 - by_chance)


def agreements(decisions: Iterable[Decision]) -> list[Agreement]:
    """Return the agreement of every two people who answered about the same faces."""
    by_face: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for decision in decisions:
        by_face[decision.photo, decision.face][decision.annotator] = str(decision.answer)
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for answers in by_face.values():
        for first, second in combinations(sorted(answers), 2):
            pairs[first, second].append((answers[first], answers[second]))
    return [
        Agreement(
            first, second, len(both), sum(a == b for a, b in both), cohens_kappa(*zip(*both, strict=True))
        )
        for (first, second), both in sorted(pairs.items())
    ]
