"""Every change of people can be undone, and every undo; what is deleted for good is gone from the journal."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library import Example, People
from setnet.library.database import Database
from setnet.library.journal import JOURNAL_TABLES, differing_rows
from tests.support.invented_photos import people_alone
from tests.support.soak import examples

NAMES = ("Anna", "Ben", "Cleo", "Dan")


def _descriptors(photo: str) -> NDArray[np.float32]:
    return FACES[2 * int(photo) - 2 :][:2]


FACES = np.eye(6, 4, dtype=np.float32) + 0.1 * np.arange(24, dtype=np.float32).reshape(6, 4)
STATE = {table: JOURNAL_TABLES[table] for table in ("people", "aliases", "examples", "labels")}


@contextmanager
def some_people() -> Iterator[People]:
    """Anna with three examples, Ben with two, an empty journal, and three photos of two faces each."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "library.db")
        database.connection.execute("PRAGMA synchronous = OFF")
        with database.writing() as db:
            for photo in (1, 2, 3):
                db.execute(
                    "INSERT INTO photos (id, path, size, mtime_ns, hash, state, stored) "
                    "VALUES (?1, ?2, 0, 0, ?3, 'ready', 0)",
                    (photo, b"/%d.jpg" % photo, bytes([photo]) * 16),
                )
                for face in (0, 1):
                    values = (photo, face, 100.0 * face, 100.0 * face + 80)
                    db.execute(
                        "INSERT INTO faces (photo, ordinal, x0, y0, x1, y1, landmarks, score, quality) "
                        "VALUES (?, ?, ?, 0, ?, 80, x'', 1, '{}')",
                        values,
                    )
        people = people_alone(database, _descriptors)
        cast(Any, people)._sure_photos = lambda person: set()  # nothing is searched here
        people.add("Anna", [Example(face, "/elsewhere.jpg", picture=b"JPEG") for face in FACES[:3]])
        people.add("Ben", [Example(face) for face in FACES[3:5]])
        people.erase_history()
        yield people
        database.close()


def state_of(people: People) -> Any:
    """Return every row of people, but of the journal."""
    with people._database.reading() as db:
        journal = people._database.journal.read()
        assert journal is not None
        assert differing_rows(db, journal) == []
        return {
            table: sorted(db.execute(f"SELECT {', '.join(columns.split())} FROM {table}"))
            for table, columns in STATE.items()
        }


def numbers(people: People, name: str, some: int) -> list[int]:
    """Return a choice of a person's examples, made by the bits of a number."""
    there = [e.number for e in people.examples(name) if e.number is not None]
    return [number for place, number in enumerate(there) if some >> place & 1]


Perform = Callable[[People, str, str, int], object]
CHANGES: dict[str, Perform] = {
    "add": lambda p, a, b, n: p.add(a, [Example(FACES[n % 6], f"/{n}.jpg", picture=b"JPEG")]),
    "rename": lambda p, a, b, n: p.rename(a, f"{b}{'' if n % 2 else ' II'}"),
    "aliases": lambda p, a, b, n: p.edit(a, aliases=[f"{b}y", "someone"][: n % 3]),
    "note": lambda p, a, b, n: p.edit(a, note="x" * (n % 3)),
    "cover": lambda p, a, b, n: p.edit(a, cover=[0, *numbers(p, a, 63)][n % (1 + len(numbers(p, a, 63)))]),
    "merge": lambda p, a, b, n: p.merge(a, [b], "merge"),
    "split": lambda p, a, b, n: p.split(a, numbers(p, a, n), b),
    "move": lambda p, a, b, n: p.move(a, numbers(p, a, n), b),
    "remove": lambda p, a, b, n: p.remove_examples(a, numbers(p, a, n)),
    "remove person": lambda p, a, b, n: p.remove(a),
    "confirm": lambda p, a, b, n: p.confirm(a, str(1 + n % 3), n % 2, None),
    "reject": lambda p, a, b, n: p.reject(a, str(1 + n % 3), n % 2),
    "undo one": lambda p, a, b, n: p.undo(p.history()[n % len(p.history())].id if p.history() else None),
}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(sorted(CHANGES)), st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(0, 63)
    ),
    max_size=14,
)


def performed(people: People, steps: list[tuple[str, str, str, int]]) -> Iterator[None]:
    """Perform each step that is possible; yield after each that was entered in the journal."""
    for kind, a, b, n in steps:
        before, length = state_of(people), len(people.history())
        try:
            CHANGES[kind](people, a, b, n)
        except InvalidInputError:
            assert state_of(people) == before
            assert len(people.history()) == length
            continue
        if len(people.history()) > length:
            yield
        else:
            assert state_of(people) == before


@given(STEPS)
@settings(max_examples=examples(15))
def test_any_changes_followed_by_as_many_undos_give_the_same_people(
    steps: list[tuple[str, str, str, int]],
) -> None:
    with some_people() as people:
        states = [state_of(people)]
        states += [state_of(people) for _ in performed(people, [s for s in steps if s[0] != "undo one"])]
        for expected in states[-2::-1]:
            people.undo()
            assert state_of(people) == expected
        with pytest.raises(InvalidInputError, match="nothing to undo"):
            people.undo()
        for expected in states[1:]:  # undoing the undos, the last first, leads all the way back
            entry = next(c for c in people.history() if c.kind == "undo" and c.undone_by is None)
            people.undo(entry.id)
            assert state_of(people) == expected


@given(STEPS)
@settings(max_examples=examples(15))
def test_each_entry_whatever_it_is_is_undone_by_the_next(steps: list[tuple[str, str, str, int]]) -> None:
    with some_people() as people:
        before = state_of(people)
        for _ in performed(people, steps):
            after, entry = state_of(people), people.history(1)[0]
            undone = people.undo(entry.id)
            assert state_of(people) == before
            assert people.undo(undone.id).undoes == undone.id
            assert state_of(people) == after
            before = after


@given(STEPS, st.sampled_from(NAMES))
@settings(max_examples=examples(15))
def test_whoever_is_removed_for_good_is_in_no_table(
    steps: list[tuple[str, str, str, int]], name: str
) -> None:
    with some_people() as people:
        people.add(name, [Example(FACES[0], "/0.jpg")])
        for _ in performed(people, steps):
            pass
        if name not in people:
            return
        with people._database.reading() as db:
            (row,) = db.execute("SELECT id FROM people WHERE name = ?", (people.get(name).name,)).fetchone()
            theirs = {"people": [row]} | {
                table: [n for (n,) in db.execute(f"SELECT id FROM {table} WHERE person = ?", (row,))]
                for table in ("examples", "labels", "aliases")
            }
        called = people.get(name).name
        people.remove(name, for_good=True)
        with people._database.reading() as db:
            for table in ("examples", "removed_examples", "labels", "removed_labels", "aliases"):
                assert not db.execute(f"SELECT 1 FROM {table} WHERE person = ?", (row,)).fetchall()
            for table, rows in theirs.items():
                for number in rows:
                    left = "SELECT 1 FROM changed_rows WHERE tbl = ? AND row = ?"
                    assert not db.execute(left, (table, number)).fetchall()
            journal = db.execute(
                "SELECT summary, before, after FROM changes JOIN changed_rows ON change = changes.id"
            )
            assert not [text for row in journal for text in row if text and called in text.split()]
        for _ in range(len(people.history())):  # whatever is left can be undone, or says why not
            try:
                people.undo()
            except InvalidInputError:
                break
        with people._database.reading() as db:
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def example(*values: float, **more: Any) -> Example:
    return Example(np.array(values, np.float32), **more)


def test_the_journal_tells_what_was_done(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0), example(0, 1, 0, 0)])
    people.add("Ben", [example(0, 0, 1, 0)])
    people.merge("Ben", ["Anna"])
    entry = people.undo()
    told = [(c.id, c.kind, c.summary, c.undoes, c.undone_by) for c in people.history()]
    assert told == [
        (4, "undo", "undid: merged Anna into Ben", 3, None),
        (3, "merge", "merged Anna into Ben", None, 4),
        (2, "add", "saved Ben with 1 example face", None, None),
        (1, "add", "saved Anna with 2 example faces", None, None),
    ]
    assert entry == people.history(1)[0]
    assert people.undo(4).summary == "redid: merged Anna into Ben"
    assert people.undo(5).summary == "undid: merged Anna into Ben"
    assert [p.name for p in people] == ["Anna", "Ben"]


def test_a_change_that_a_later_one_builds_on_is_undone_after_it(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0)])
    people.rename("Anna", "Anne")
    people.rename("Anne", "Annie")
    with pytest.raises(InvalidInputError, match=r"change 2 .* change 3 \(renamed Anne to Annie\).*Undo that"):
        people.undo(2)
    people.add("Annie", [example(0, 1, 0, 0)])
    with pytest.raises(InvalidInputError, match=r"change 1 .* change 4 \(gave Annie 1 example face\)"):
        people.undo(1)
    with pytest.raises(InvalidInputError, match="no change 99"):
        people.undo(99)
    people.undo(3)
    with pytest.raises(InvalidInputError, match="undone already, by change 5"):
        people.undo(3)
    assert [(p.name, p.examples) for p in people] == [("Anne", 2)]


def test_an_undo_that_needs_a_name_which_is_taken_since_says_so(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0)])
    people.rename("Anna", "Anne")
    people.add("ANNA", [example(0, 1, 0, 0)])
    with pytest.raises(InvalidInputError, match="'Anna' is taken, by 'ANNA'"):
        people.undo(2)
    assert [p.name for p in people] == ["ANNA", "Anne"]


def test_a_later_change_of_the_same_person_that_is_independent_is_kept(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0)])
    people.add("Annie", [example(0, 1, 0, 0)])
    people.merge("Anna", ["Annie"])
    people.add("Anna", [example(0, 0, 1, 0)])
    people.undo(3)
    assert [(p.name, p.examples) for p in people] == [("Anna", 2), ("Annie", 1)]


def test_whoever_was_merged_into_somebody_is_removed_with_them(people: People, tmp_path: Path) -> None:
    for name, row in zip(("Zacharias", "Yolanda", "Xavier"), np.eye(3, 4), strict=True):
        people.add(name, [example(*row)])
    people.rename("Zacharias", "Zebulon")
    people.merge("Yolanda", ["Zebulon"])
    people.merge("Xavier", ["Yolanda"])
    people.add("Anna", [example(0, 0, 0, 1)])
    people.remove("Xavier", for_good=True)
    for trace in (b"Zacharias", b"Zebulon", b"Yolanda", b"Xavier"):
        assert not anywhere(tmp_path, trace)
    assert [change.summary for change in people.history()] == [
        "deleted 1 person for good",
        "saved Anna with 1 example face",
    ]


def test_who_was_removed_comes_back_and_is_deleted_for_good_by_name(people: People, tmp_path: Path) -> None:
    secret = example(0.5, 0.25, 0.125, 0.0625, picture=b"a picture of Anna" * 200)
    for name in ("Anna", "Ben", "Cleo"):
        people.add(name, [secret if name == "Anna" else example(0, 1, 0, 0), example(1, 0, 0, 0)])
    people.move("Ben", [4], "Cleo")
    people.remove("Anna", "Ben")
    assert [person.name for person in people] == ["Cleo"]
    people.remove("Cleo", for_good=True)  # who shares a change with Ben
    with pytest.raises(InvalidInputError, match="deleted 1 person for good"):
        people.undo()
    removed = {change.summary: change.id for change in people.history() if change.kind == "remove"}
    people.undo(removed["removed Ben"])
    assert [person.name for person in people] == ["Ben"]
    assert anywhere(tmp_path, secret.descriptor.tobytes())
    people.remove("anna", for_good=True)
    for trace in (secret.descriptor.tobytes(), b"a picture of Anna", b"Anna"):
        assert not anywhere(tmp_path, trace)
    with pytest.raises(InvalidInputError, match="no person 'Anna'"):
        people.remove("Anna", for_good=True)
    assert [person.name for person in people] == ["Ben"]


def test_undo_stops_at_what_was_deleted_for_good(people: People) -> None:
    people.add("Anna", [example(1, 0, 0, 0)])
    people.add("Ben", [example(0, 1, 0, 0)])
    (deleted,) = people.remove("Ben", for_good=True)
    for number in (None, deleted.id):
        with pytest.raises(InvalidInputError, match="cannot be undone"):
            people.undo(number)
    assert [person.name for person in people] == ["Anna"]
    people.rename("Anna", "Anne")
    people.undo()  # what came after it can be undone
    with pytest.raises(InvalidInputError, match="undo --change ID"):
        people.undo()
    people.undo(1)
    assert len(people) == 0


def test_an_erased_journal_undoes_nothing_and_leaves_no_bytes(people: People, tmp_path: Path) -> None:
    secret = example(0.5, 0.25, 0.125, 0.0625, source="/secret.jpg", picture=b"a picture of Anna" * 200)
    people.add("Anna", [example(1, 0, 0, 0), secret])
    people.remove_examples("Anna", [2])
    people.rename("Anna", "Ben")
    assert anywhere(tmp_path, secret.descriptor.tobytes())
    assert people.erase_history() == 3
    for trace in (secret.descriptor.tobytes(), b"a picture of Anna", b"Anna", b"/secret.jpg"):
        assert not anywhere(tmp_path, trace)
    assert (people.history(), [p.name for p in people]) == ([], ["Ben"])


def test_an_example_removed_for_good_leaves_no_bytes_and_no_way_back(people: People, tmp_path: Path) -> None:
    secret = example(0.5, 0.25, 0.125, 0.0625, source="/secret.jpg", picture=b"a picture of Anna" * 200)
    people.add("Anna", [secret, example(1, 0, 0, 0)])
    people.edit("Anna", cover=1)
    people.remove_examples("Anna", [1])
    people.undo()
    assert people.remove_examples("Anna", [1], for_good=True).examples == 1
    for trace in (secret.descriptor.tobytes(), b"a picture of Anna", b"/secret.jpg"):
        assert not anywhere(tmp_path, trace)
    assert people.get("Anna").cover is None
    with pytest.raises(
        InvalidInputError, match=r"\(removed 1 example face of Anna for good\) cannot be undone"
    ):
        people.undo()
    people.undo(1)  # what is left of the first change; the others were about the cover
    assert len(people) == 0


def anywhere(folder: Path, data: bytes) -> bool:
    return any(data in file.read_bytes() for file in folder.rglob("*") if file.is_file())
