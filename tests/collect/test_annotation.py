from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from setnet.collect import (
    AnnotationQueue,
    Answer,
    CollectRun,
    annotation,
    cohens_kappa,
    import_answers,
    run_status,
)
from setnet.errors import InvalidInputError, StorageError
from tests.support.invented_collect import invented_run, name_of

ANN = "ann"


@pytest.fixture
def run(tmp_path: Path) -> CollectRun:
    """Three people in the list; each photo has a stranger who is asked, as three names are the five best."""
    made: CollectRun = invented_run(tmp_path, 3, [(0, 1, 10), (1, 2, 11), (0, 2, 12, 13)])
    return made


def test_every_face_is_asked_once_and_never_again(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    asked = []
    while (number := queue.next(ANN)) is not None:
        asked.append(number)
        queue.answer(ANN, number, Answer("unknown"))
    assert asked == [0, 1, 2, 3]
    assert AnnotationQueue(run).next(ANN) is None
    assert AnnotationQueue(run).next("ben") is None


def test_an_undone_answer_is_asked_again(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    queue.answer(ANN, 0, Answer("unknown"))
    queue.answer(ANN, 1, Answer("name", name_of(2)))
    assert queue.undo(ANN) == 1
    assert queue.next(ANN) == 1
    assert AnnotationQueue(run).next(ANN) == 1
    assert queue.undo(ANN) == 0
    assert queue.undo(ANN) is None
    assert [d.undone for d in AnnotationQueue(run).log.decisions] == [True, True]


def test_the_other_faces_of_a_dropped_photo_are_not_asked(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    queue.answer(ANN, 2, Answer("drop photo"))
    assert [queue.next(ANN)] == [0]
    for number in (0, 1):
        queue.answer(ANN, number, Answer("unknown"))
    assert queue.next(ANN) is None
    assert queue.state().answered == 4


def test_a_share_is_asked_of_a_second_person_and_agreement_is_reported(run: CollectRun) -> None:
    queue = AnnotationQueue(run, twice=1.0)
    for number in range(4):
        queue.answer(ANN, number, Answer("unknown"))
    for number in range(4):
        assert queue.next("ben") == number
        queue.answer("ben", number, Answer("unknown") if number else Answer("name", name_of(0)))
    assert queue.next("cid") is None
    agreement = run_status(run).agreement
    assert [(a.first, a.second, a.faces, a.agreed) for a in agreement] == [("ann", "ben", 4, 3)]


def test_kappa_is_cohens() -> None:
    # 50 cases, both yes 20, both no 15, one only 5 and 10: 0.4, the usual example
    first = ["y"] * 25 + ["n"] * 25
    second = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15
    assert cohens_kappa(first, second) == pytest.approx(0.4)
    assert cohens_kappa(["a"], ["a"]) == 1.0


def test_half_a_line_is_cut_off_and_every_other_answer_stays(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    queue.answer(ANN, 0, Answer("unknown"))
    with queue.log.path.open("ab") as file:
        file.write(b'{"time": "2024-')
    again = AnnotationQueue(run)
    assert again.next(ANN) == 1
    again.answer(ANN, 1, Answer("unknown"))
    assert AnnotationQueue(run).next(ANN) == 2


def test_a_full_disk_stores_nothing_and_loses_nothing(
    run: CollectRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = AnnotationQueue(run)
    queue.answer(ANN, 0, Answer("unknown"))
    before = queue.log.path.read_bytes()

    def full(path: Path, data: bytes) -> None:
        with path.open("ab") as file:
            file.write(data[:7])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(annotation, "append_durably", full)
        with pytest.raises(StorageError, match=r"not stored.*No space"):
            queue.answer(ANN, 1, Answer("unknown"))
    assert queue.log.path.read_bytes() == before
    assert queue.next(ANN) == 1


def test_the_answers_of_one_run_are_imported_into_another(run: CollectRun, tmp_path: Path) -> None:
    queue = AnnotationQueue(run)
    queue.answer(ANN, 0, Answer("name", name_of(1)))
    queue.answer(ANN, 1, Answer("unknown"))
    queue.undo(ANN)
    file = tmp_path / "answers.jsonl"
    # paths of another machine: the end of a path is enough
    file.write_text(queue.log.path.read_text().replace(str(tmp_path / "archive"), "archive"))
    other = invented_run(tmp_path / "other", 3, [(0, 1, 10), (1, 2, 11), (0, 2, 12, 13)])
    done = import_answers(AnnotationQueue(other), file, "script")
    assert (done.stored, done.known, done.not_asked) == (1, 0, 0)
    again = import_answers(AnnotationQueue(other), file, "script")
    assert (again.stored, again.known) == (0, 1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"face": 1, "answer": "unknown"}, "photo"),
        ({"photo": "a.jpg", "face": 1, "answer": "perhaps"}, "perhaps"),
        ({"photo": "000000.jpg", "face": 3, "answer": "name", "name": "Nobody"}, "not in the list"),
    ],
)
def test_answers_that_are_none_are_named(run: CollectRun, tmp_path: Path, row: object, message: str) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(InvalidInputError, match=message):
        import_answers(AnnotationQueue(run), file, ANN)


def test_answers_about_faces_found_otherwise_do_not_count(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    queue.answer(ANN, 0, Answer("unknown"))
    text = queue.log.path.read_text().replace("210.0", "211.0")
    queue.log.path.write_text(text)
    assert AnnotationQueue(run).next(ANN) == 0
