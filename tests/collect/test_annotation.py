from __future__ import annotations

import errno
from pathlib import Path

import pytest

from setnet.collect import AnnotationQueue, Answer, CollectRun, annotation
from setnet.collect.annotation import read_answers
from setnet.errors import InvalidInputError, StorageError
from tests.support.invented_collect import invented_run, name_of


@pytest.fixture
def run(tmp_path: Path) -> CollectRun:
    """Three people in the list; each photo has a stranger who is asked, as three names are the five best."""
    made: CollectRun = invented_run(tmp_path, 3, [(0, 1, 10), (1, 2, 11), (0, 2, 12, 13)])
    return made


def test_every_face_is_asked_once_and_never_again(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    asked = []
    while (number := queue.next()) is not None:
        asked.append(number)
        queue.answer(number, Answer("unknown"))
    assert asked == [0, 1, 2, 3]
    assert AnnotationQueue(run).next() is None


def test_an_undone_answer_is_asked_again(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    queue.answer(0, Answer("unknown"))
    queue.answer(1, Answer("name", name_of(2)))
    assert queue.undo() == 1
    assert queue.next() == 1
    assert AnnotationQueue(run).next() == 1
    assert queue.undo() == 0
    assert queue.undo() is None
    assert AnnotationQueue(run).answers == []


def test_the_other_faces_of_a_dropped_photo_are_not_asked(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    queue.answer(2, Answer("drop photo"))
    assert [queue.next()] == [0]
    for number in (0, 1):
        queue.answer(number, Answer("unknown"))
    assert queue.next() is None
    assert queue.state().answered == 4


def test_a_later_answer_counts_and_taking_it_back_restores_the_earlier_one(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    queue.answer(0, Answer("unknown"))
    queue.answer(0, Answer("name", name_of(1)))
    assert [str(answer) for answer in dict(read_answers(run)).values()] == [name_of(1)]
    assert queue.undo() == 0
    assert [str(answer) for answer in dict(read_answers(run)).values()] == ["unknown"]
    assert queue.next() == 1


def test_a_full_disk_stores_nothing_and_loses_nothing(
    run: CollectRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = AnnotationQueue(run)
    queue.answer(0, Answer("unknown"))

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(annotation, "replace_file", full)
        with pytest.raises(StorageError, match=r"not stored.*No space"):
            queue.answer(1, Answer("unknown"))
    assert queue.next() == 1
    assert AnnotationQueue(run).answers == queue.answers
    (run.path / "answers.json").write_text('[{"photo": "a')
    with pytest.raises(StorageError, match=r"answers\.json: no answers"):
        AnnotationQueue(run)


def test_answers_that_are_none_are_refused(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    with pytest.raises(InvalidInputError, match="perhaps"):
        Answer("perhaps")
    with pytest.raises(InvalidInputError, match="not in the list"):
        queue.answer(0, Answer("name", "Nobody"))
    with pytest.raises(InvalidInputError, match="no question 9"):
        queue.answer(9, Answer("unknown"))


def test_answers_about_faces_found_otherwise_do_not_count(run: CollectRun) -> None:
    queue = AnnotationQueue(run)
    queue.answer(0, Answer("unknown"))
    file = run.path / "answers.json"
    file.write_text(file.read_text().replace("210.0", "211.0"))
    assert AnnotationQueue(run).next() == 0
