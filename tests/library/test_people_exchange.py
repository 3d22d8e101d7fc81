"""People go to a file and come back, with descriptors or found again; a hostile file is an error."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library import Example, Library
from tests.support import invented_photos
from tests.support.invented_photos import face_of

JPEG = b"\xff\xd8\xff a picture"


@pytest.fixture
def full(invented: Library) -> Library:
    """A library with two people who have all that people can have."""
    photo = invented.photos.get("1")
    own = Example(
        invented.photos.descriptors("1")[0],
        "/invented/a",
        photo.faces[0].box,
        JPEG,
        "group",
        photo.stored_hash,
    )
    portrait = Example(face_of(1, 5), "/elsewhere/anna.jpg", Box(1, 2, 3, 4), JPEG, content=bytes(16))
    invented.people.add("Anna", [own, portrait])
    invented.people.edit("Anna", aliases=["Annie", "Ann"], note="line one\nline two", cover=2)
    invented.people.confirm("Anna", "2", 0)
    invented.people.reject("Anna", "3", 0)
    invented.people.tag("Anna", "1", Box(1200, 900, 1300, 1000))
    invented.people.tag("Anna", "3")
    invented.people.add("علی\u200cرضا", [Example(face_of(3, 9))])  # noqa: RUF001
    return invented


def facts(library: Library) -> dict[str, Any]:
    """Return all that is known of people, but for numbers that differ between libraries."""
    found = {}
    for person in library.people:
        examples = library.people.examples(person)
        found[person.id] = {
            "person": (person.name, person.aliases, person.note, person.added),
            "examples": [
                (e.descriptor.tobytes(), e.source, e.box, e.picture, e.origin, e.content, e.added)
                for e in examples
            ],
            "cover": [e.source for e in examples if e.number == person.cover],
            "labels": [
                (v.is_match, v.photo_id, v.face, v.descriptor.tobytes(), v.added)
                for v in library.people.labels(person)
            ],
            "tags": library.people.tagged_contents(person),
        }
    return found


@pytest.fixture
def other(tmp_path: Path) -> Library:
    """A library of the same photos without people."""
    made = Library.create(tmp_path / "other")
    invented_photos.store(made, {"a": [1, 2], "b": [1, 3], "c": [3]})
    return made


def test_all_of_people_travels_with_descriptors(full: Library, other: Library, tmp_path: Path) -> None:
    done = full.people.export(tmp_path / "people.json")
    assert asdict(done) == {"people": 2, "examples": 4, "labels": 2}
    assert (tmp_path / "people.json").stat().st_mode & 0o777 == 0o600
    report = other.people.import_file(tmp_path / "people.json")
    assert (report.people, report.new, report.examples, report.labels) == (2, 2, 4, 2)
    assert report.notes == []
    assert facts(other) == facts(full)
    assert other.check() == []


def test_importing_twice_changes_nothing_and_an_import_is_undone_as_a_whole(
    full: Library, other: Library, tmp_path: Path
) -> None:
    full.people.export(tmp_path / "people.json")
    first = other.people.import_file(tmp_path / "people.json")
    before = facts(other)
    again = other.people.import_file(tmp_path / "people.json")
    assert (again.new, again.examples, again.labels, again.change) == (0, 0, 0, None)
    assert facts(other) == before
    assert full.people.import_file(tmp_path / "people.json").change is None
    assert [c.summary for c in other.people.history()] == ["imported 2 people"]
    other.people.undo(first.change)
    assert len(other.people) == 0


def test_without_descriptors_faces_are_found_again_in_the_photos(
    full: Library, other: Library, tmp_path: Path
) -> None:
    full.people.export(tmp_path / "people.json", descriptors=False)
    assert 'descriptor": "' not in (tmp_path / "people.json").read_text()
    report = other.people.import_file(tmp_path / "people.json")
    assert (report.new, report.examples, report.labels, report.not_found) == (2, 2, 2, 2)
    assert report.notes[0].startswith("Anna: 1 of 3 example faces and 0 of 2")
    anna, expected = facts(other), facts(full)
    for uid, known in expected.items():
        assert anna[uid]["person"] == known["person"]  # no name is lost
        assert anna[uid]["labels"] == known["labels"]
        assert set(anna[uid]["examples"]) <= set(known["examples"])


def test_names_survive_starting_over_before_the_photos_are_back(full: Library, tmp_path: Path) -> None:
    full.people.export(tmp_path / "people.json", descriptors=False)
    with Library.create(tmp_path / "new") as new:
        report = new.people.import_file(tmp_path / "people.json")
        assert (report.new, report.examples, report.not_found) == (2, 0, 6)
        assert [p.examples for p in new.people] == [0, 0]
        invented_photos.store(new, {"a": [1, 2], "b": [1, 3], "c": [3]})
        report = new.people.import_file(tmp_path / "people.json")
        assert (report.new, report.examples, report.labels, report.not_found) == (0, 2, 2, 2)
        assert [p.name for p in new.people] == [p.name for p in full.people]


def test_a_name_that_is_somebody_elses_here_gets_a_number(
    full: Library, other: Library, tmp_path: Path
) -> None:
    full.people.export(tmp_path / "people.json")
    other.people.add("anna", [Example(face_of(7))])
    other.people.add("Ann", [Example(face_of(8))])
    report = other.people.import_file(tmp_path / "people.json")
    assert [p.name for p in other.people][:3] == ["Ann", "anna", "Anna (2)"]
    assert "imported as 'Anna (2)'" in report.notes[0]
    assert "'Ann' is somebody else's" in report.notes[1]
    assert other.people.get("Anna (2)").aliases == ("Annie",)
    assert other.people.import_file(tmp_path / "people.json").change is None


def test_what_was_said_here_is_not_overruled(full: Library, other: Library, tmp_path: Path) -> None:
    full.people.export(tmp_path / "people.json")
    other.people.import_file(tmp_path / "people.json")
    other.people.reject("Anna", "2", 0)
    other.people.rename("Anna", "Anne")
    other.people.edit("Anne", note="mine")
    other.people.import_file(tmp_path / "people.json")
    assert {(v.is_match, v.photo_id) for v in other.people.labels("Anne")} == {(False, "2"), (False, "3")}
    assert other.people.get("Anne").note == "mine"


def test_descriptors_of_another_model_are_refused(full: Library, other: Library, tmp_path: Path) -> None:
    full.people.export(tmp_path / "people.json")
    with other._database.writing() as db:
        db.execute("UPDATE meta SET value = 'edgeface-s 1234' WHERE key = 'model'")
    with pytest.raises(InvalidInputError, match=r"made by 'sface.*', .* 'edgeface-s'.*--without-desc"):
        other.people.import_file(tmp_path / "people.json")
    assert len(other.people) == 0
    report = other.people.import_file(tmp_path / "people.json", descriptors=False)
    assert (report.new, report.examples) == (2, 2)


def test_a_failure_in_the_middle_imports_nobody(
    full: Library, other: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full.people.export(tmp_path / "people.json")
    from setnet.library import people_exchange

    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(people_exchange, "label_face", failing)
    with pytest.raises(Exception, match="No space"):
        other.people.import_file(tmp_path / "people.json")
    assert len(other.people) == 0
    assert other.people.history() == []


def good(library: Library) -> dict[str, Any]:
    """Return a file that fits the library, to be spoilt."""
    found: dict[str, Any] = json.loads(library.people.to_file().to_bytes())
    return found


def changed(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(file: dict[str, Any]) -> None:
        *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
        place: Any = file
        for step in way:
            place = place[step]
        place[last] = value

    return change


def vector(*values: float) -> str:
    return base64.b64encode(np.array(values, "<f4").tobytes()).decode()


EXAMPLE = "people.0.examples.0."
HOSTILE: dict[str, Callable[[dict[str, Any]], None]] = {
    "no format": changed("format", "something else"),
    "a format left out": lambda file: file.pop("format"),
    "a later version": changed("version", 2),
    "people that are no list": changed("people", {"0": 1}),
    "a person that is a number": changed("people.0", 7),
    "an id too short": changed("people.0.id", "abc"),
    "an id that is no text": changed("people.0.id", ["0123456789ab"]),
    "no name": changed("people.0.name", ""),
    "a name of another direction": changed("people.0.name", "a\u202eb"),
    "half of a pair": changed("people.0.note", "\ud800"),
    "a null character": changed("people.0.note", "a\0b"),
    "an alias that is a list": changed("people.0.aliases", [["x"]]),
    "a note too long": changed("people.0.note", "x" * 20_000),
    "a time that is true": changed("people.0.added", True),
    "a time out of this world": changed("people.0.added", 1e300),
    "a number with many digits": changed("people.0.added", 10**400),
    "a descriptor of another length": changed(EXAMPLE + "descriptor", vector(1, 2, 3)),
    "a descriptor with NaN": changed(EXAMPLE + "descriptor", vector(*[float("nan")] * 128)),
    "a descriptor with infinity": changed(EXAMPLE + "descriptor", vector(*[float("inf")] * 128)),
    "a descriptor of zeros": changed(EXAMPLE + "descriptor", vector(*[0.0] * 128)),
    "a descriptor that is no base64": changed(EXAMPLE + "descriptor", "!" * 684),
    "a dimension of nothing": changed("dim", 0),
    "a dimension that is huge": changed("dim", 10**9),
    "a picture that is no JPEG": changed(EXAMPLE + "picture", base64.b64encode(b"<script>").decode()),
    "a picture that is huge": changed(EXAMPLE + "picture", base64.b64encode(JPEG + bytes(2 << 20)).decode()),
    "a box of three": changed(EXAMPLE + "box", [0, 0, 1]),
    "a box inside out": changed(EXAMPLE + "box", [5, 5, 1, 1]),
    "a box of texts": changed(EXAMPLE + "box", ["0", "0", "1", "1"]),
    "a content too short": changed(EXAMPLE + "content", "abcd"),
    "a content that is no number": changed(EXAMPLE + "content", "z" * 32),
    "a source that is a number": changed(EXAMPLE + "source", 5),
    "a label that is perhaps": changed("people.0.labels.0.is_match", "hm"),
    "a label on nothing": changed("people.0.labels.0.content", None),
    "the same id twice": lambda file: changed("people.1.id", file["people"][0]["id"])(file),
    "the same name twice": changed("people.1.name", "ANNA"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_an_error_that_says_where(full: Library, other: Library, kind: str) -> None:
    file = good(full)
    other.people.import_file(json.dumps(file).encode())
    other.people.undo()
    HOSTILE[kind](file)
    with pytest.raises(InvalidInputError, match="file of people"):
        other.people.import_file(json.dumps(file).encode())
    assert len(other.people) == 0


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe", b"[1, 2", b"null", b"[" * 100_000, b'{"a":' * 100_000, b'{"format": NaN}', b"1e999"],
)
def test_what_is_no_json_is_an_error(other: Library, data: bytes) -> None:
    with pytest.raises(InvalidInputError, match="file of people"):
        other.people.import_file(data)


def test_a_file_that_is_not_there_or_too_large_is_an_error(
    other: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInputError, match="no file"):
        other.people.import_file(tmp_path / "nothing.json")
    with pytest.raises(InvalidInputError, match="make it first"):
        other.people.export(tmp_path / "nowhere" / "people.json")
    monkeypatch.setattr("setnet.library.people_exchange.LARGEST_FILE", 10)
    (tmp_path / "large.json").write_bytes(b" " * 11)
    with pytest.raises(InvalidInputError, match="at most"):
        other.people.import_file(tmp_path / "large.json")
