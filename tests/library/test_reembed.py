"""A library described by another model has other descriptors, and everything else as it was."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import InvalidInputError, LockedError, ModelError
from setnet.faces import FaceSettings, load_descriptor, model_entry, model_paths
from setnet.faces.registry import write_model_entry
from setnet.library import Example, IndexProgress, Library, LibraryPhoto, index_run
from setnet.library.folder_scan import is_few
from tests.support.small_models import write_small_model


@pytest.fixture
def bgr(tmp_path: Path) -> str:
    """SFace under another name, which sees colours the other way round: 128-D, other descriptors."""
    (source,) = model_paths(model_entry("sface", "descriptor")).values()
    copy = Path(shutil.copy(source, tmp_path / "bgr.onnx"))
    return str(write_model_entry(copy, name="bgr", dim=128, colour="bgr"))


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A model of another dimension."""
    return str(write_model_entry(write_small_model(tmp_path / "small.onnx"), name="small", dim=24))


@pytest.fixture
def place(library: Library, portrait: Callable[[str], str], photos: Path) -> Path:
    """A library with two people: one from a portrait elsewhere too, one from a photo of the library alone."""
    library.people.add_photos("Anna", [portrait("P001"), str(photos / "2016" / "pair.jpg#1")])
    library.people.add_photos("Ben", [str(photos / "2019" / "three.jpg#3")])
    return library.path


@pytest.fixture
def opened(place: Path) -> Iterator[Callable[[], Library]]:
    """Return the function that opens the library."""
    made: list[Library] = []

    def open_again() -> Library:
        made.append(Library.open(place))
        return made[-1]

    yield open_again
    for library in made:
        library.close()


def state(library: Library) -> dict[str, Any]:
    """Return all that must not change: photos, faces, people and where their examples come from."""
    assert library.check() == []
    return {
        "photos": [
            (photo.id, photo.path, photo.content, photo.taken, photo.faces)
            for photo in library.photos.all_photos()
        ],
        "people": {
            person.name: [(e.source, e.box, e.picture) for e in library.people.examples(person.name)]
            for person in library.people
        },
        "folders": library.folders,
        "failures": library.photos.failures(),
    }


def descriptors(library: Library) -> dict[str, Any]:
    return {photo.path.name: library.photos.descriptors(photo.id) for photo in library.photos.all_photos()}


@pytest.mark.parametrize("workers", [0, 2])
def test_it_is_the_library_that_the_other_model_would_have_made(
    place: Path, opened: Callable[[], Library], photos: Path, bgr: str, tmp_path: Path, workers: int
) -> None:
    before = state(opened())
    report = Library.reembed(place, bgr, workers=workers)
    assert (report.scanned, report.changed, report.faces, report.unchanged) == (5, 5, 8, 0)
    assert report.ok
    again = opened()
    assert again.settings == FaceSettings(descriptor=bgr)
    assert state(again) == before
    with Library.create(tmp_path / "fresh", FaceSettings(descriptor=bgr)) as fresh:
        fresh.index([photos], workers=0)
        fresh.people.add_photos("Anna", [e.source + "#1" for e in again.people.examples("Anna") if e.source])
        for name, vectors in descriptors(fresh).items():
            np.testing.assert_allclose(descriptors(again)[name], vectors, atol=1e-4)
        theirs = fresh.people.descriptors("Anna")
    np.testing.assert_allclose(again.people.descriptors("Anna"), theirs, atol=1e-3)
    assert {hit.path.name for hit in again.search(["Anna", "Ben"], at_least=2)} == {"pair.jpg", "three.jpg"}
    assert again.index(workers=0).unchanged == 6  # the broken file included
    assert not (place / "reembedded").exists()
    assert sorted(p.name for p in (place / "quarantine").iterdir())[:2] == ["index", "library.db"]


def test_another_dimension(place: Path, opened: Callable[[], Library], small: str, photos: Path) -> None:
    before = state(opened())
    Library.reembed(place, small, workers=0)
    library = opened()
    assert (library.dim, library.set_index.shape.dim) == (24, 24)
    assert state(library) == before
    assert library.people.descriptors("Anna").shape == (2, 24)
    one = next(photo for photo in library.photos.all_photos() if photo.faces)
    from setnet.faces import describe_faces

    expected = describe_faces(
        one.path,
        [f.box for f in one.faces],
        [f.landmarks for f in one.faces],
        FaceSettings(descriptor=small),
    )
    np.testing.assert_allclose(library.photos.descriptors(one.id), expected, atol=1e-5)
    library.people.add_photos("Carl", [str(photos / "2019" / "others.jpg#2")])
    assert library.people.descriptors("Carl").shape == (1, 24)


def test_a_second_call_has_nothing_to_do(place: Path, bgr: str) -> None:
    Library.reembed(place, bgr, workers=0)
    file = (place / "library.db").stat().st_ino
    report = Library.reembed(place, bgr, workers=0)
    assert (report.scanned, report.unchanged, report.ok) == (5, 5, True)
    assert "5 unchanged" in report.summary
    assert (place / "library.db").stat().st_ino == file


def test_a_model_whose_file_has_changed_is_the_reason_to_describe_again(photos: Path, tmp_path: Path) -> None:
    path = write_small_model(tmp_path / "own.onnx")
    entry = str(write_model_entry(path, name="own", dim=24))
    with Library.create(tmp_path / "mine", FaceSettings(descriptor=entry)) as library:
        library.index([photos], workers=0)
        old = descriptors(library)["pair.jpg"]
    write_small_model(path, dim=32, seed=1)
    write_model_entry(path, name="own", dim=32)
    with Library.open(tmp_path / "mine") as library, pytest.raises(ModelError, match="index --reembed"):
        library.index(workers=0)
    assert Library.reembed(tmp_path / "mine", workers=0).ok
    with Library.open(tmp_path / "mine") as library:
        assert descriptors(library)["pair.jpg"].shape == (len(old), 32)
        assert library.index(workers=0).unchanged == 6


def test_an_interrupted_run_is_gone_on_with_and_searches_use_the_old_index(
    place: Path, opened: Callable[[], Library], bgr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_run, "BATCH_PHOTOS", 1)
    old = descriptors(opened())
    seen: list[IndexProgress] = []
    report = Library.reembed(place, bgr, workers=0, progress=seen.append, should_stop=lambda: len(seen) >= 2)
    assert (report.interrupted, report.changed, report.scanned, report.ok) == (True, 2, 5, False)
    library = opened()
    assert library.settings.descriptor == "sface"
    assert all(np.array_equal(old[name], vectors) for name, vectors in descriptors(library).items())
    assert library.search(["Ben"], k=1)[0].matches
    report = Library.reembed(place, bgr, workers=0)
    assert (report.unchanged, report.changed, report.interrupted, report.ok) == (2, 3, False, True)
    assert state(opened())["people"].keys() == {"Anna", "Ben"}
    assert not any(np.allclose(old[n], v) for n, v in descriptors(opened()).items() if len(v))


def test_an_interrupt_keeps_what_was_described(
    place: Path, bgr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(now: IndexProgress) -> None:
        if now.done == 3:
            raise KeyboardInterrupt

    report = Library.reembed(place, bgr, workers=0, progress=interrupt)
    assert (report.interrupted, report.changed) == (True, 3)
    assert Library.reembed(place, bgr, workers=0).unchanged == 3


def test_photos_that_were_indexed_again_meanwhile_are_described_again(
    place: Path, opened: Callable[[], Library], photos: Path, bgr: str, compose: Callable[..., None]
) -> None:
    seen: list[IndexProgress] = []
    Library.reembed(place, bgr, workers=0, progress=seen.append, should_stop=lambda: len(seen) >= 4)
    compose(photos / "2016" / "alone.jpg", ("P010", "P005"))
    compose(photos / "2020" / "new.jpg", ("P010",))
    (photos / "2016" / "pair.jpg").unlink()
    with opened() as library:
        library.index(workers=0, prune=True)
    report = Library.reembed(place, bgr, workers=0)
    assert (report.scanned, report.changed + report.unchanged) == (5, 5)
    assert report.changed >= 2
    with opened() as library:
        assert library.check() == []
        new = {photo.path.name: len(photo.faces) for photo in library.photos.all_photos()}
        assert new == {"alone.jpg": 2, "nobody.jpg": 0, "others.jpg": 2, "three.jpg": 3, "new.jpg": 1}
        assert len(descriptors(library)["alone.jpg"]) == 2


def test_another_model_begins_again(place: Path, opened: Callable[[], Library], bgr: str, small: str) -> None:
    seen: list[IndexProgress] = []
    Library.reembed(place, bgr, workers=0, progress=seen.append, should_stop=lambda: len(seen) >= 2)
    report = Library.reembed(place, small, workers=0)
    assert (report.unchanged, report.changed) == (0, 5)
    assert opened().dim == 24


def test_photos_that_are_gone_are_refused_or_removed(
    place: Path, opened: Callable[[], Library], photos: Path, bgr: str
) -> None:
    (photos / "2016" / "alone.jpg").unlink()
    with pytest.raises(InvalidInputError, match=r"1 of 5 photos are not where .*alone\.jpg.*--prune"):
        Library.reembed(place, bgr, workers=0)
    assert opened().settings.descriptor == "sface"
    with pytest.raises(InvalidInputError, match="--yes if they are more than a tenth"):
        Library.reembed(place, bgr, workers=0, prune=is_few)
    report = Library.reembed(place, bgr, workers=0, prune=True)
    assert (report.removed, report.changed, report.ok) == (1, 4, True)
    assert "alone.jpg" not in descriptors(opened())
    assert opened().check() == []


def test_a_photo_that_changed_is_left_to_the_next_index_run(
    place: Path, opened: Callable[[], Library], photos: Path, bgr: str
) -> None:
    changed = photos / "2016" / "alone.jpg"
    changed.write_bytes(changed.read_bytes() + b"x")
    (photos / "2019" / "others.jpg").write_bytes(b"no photo any more")
    report = Library.reembed(place, bgr, workers=0)
    assert not report.ok
    assert {path.name: reason for path, reason in report.failed} == dict.fromkeys(
        ("alone.jpg", "others.jpg"), "its content has changed since it was indexed"
    )
    with opened() as library:
        assert set(descriptors(library)) == {"pair.jpg", "three.jpg", "nobody.jpg"}
        assert library.check() == []
        library.index(workers=0)
        assert len(descriptors(library)["alone.jpg"]) == 1
        assert {failure.path.name for failure in library.photos.failures()} == {"broken.jpg", "others.jpg"}


def test_examples_follow_their_face_wherever_it_can_still_be_seen(
    tmp_path: Path, library: Library, portrait: Callable[[str], str], photos: Path, bgr: str
) -> None:
    copy = Path(shutil.copy(portrait("P005"), tmp_path / "portrait.jpg"))
    library.people.add_photos("From a file", [portrait("P001")])
    library.people.add_photos("From a photo", [str(photos / "2016" / "pair.jpg#2")])
    library.people.add_photos("From a picture", [str(copy)])
    (kept,) = library.people.examples("From a picture")
    library.people.add("From nowhere", [Example(kept.descriptor, str(copy), kept.box)])
    library.people.add("Never seen", [Example(kept.descriptor)])
    library.people.add("Damaged", [Example(kept.descriptor, picture=b"no picture")])
    copy.unlink()
    library.close()
    report = Library.reembed(library.path, bgr, workers=0)
    assert report.lost == (("From nowhere", copy), ("Never seen", None), ("Damaged", None))
    assert not report.ok
    with Library.open(library.path) as again:
        counts = {person.name: person.examples for person in again.people}
        assert counts == {
            "Damaged": 0,
            "From a file": 1,
            "From a photo": 1,
            "From a picture": 1,
            "From nowhere": 0,
            "Never seen": 0,
        }
        person = again.person(portrait("P005"))
        alike = float((again.people.descriptors("From a picture") @ person.descriptors.T)[0, 0])
        assert alike > 0.7, "the small picture still looks like the portrait"
        assert again.people.examples("From a picture")[0].picture == kept.picture
        assert again.check() == []


def test_a_photo_that_took_the_place_of_another_is_not_taken_for_it(
    tmp_path: Path, library: Library, portrait: Callable[[str], str], bgr: str
) -> None:
    """The same path with another face elsewhere in it: the picture decides."""
    from PIL import Image

    place = Path(shutil.copy(portrait("P001"), tmp_path / "p.jpg"))
    library.people.add_photos("Anna", [str(place)])
    with Image.open(portrait("P003")) as other:
        canvas = Image.new("RGB", (1600, 1600))
        canvas.paste(other, (1100, 1100))
        canvas.save(place)
    library.close()
    assert Library.reembed(library.path, bgr, workers=0).ok
    with Library.open(library.path) as again:
        found = again.people.descriptors("Anna")
        alike = [(found @ again.person(portrait(who)).descriptors.T).item() for who in ("P001", "P003")]
    assert alike[0] > 0.7 > 0.5 > alike[1]


def test_only_one_writes_at_a_time_and_nothing_is_lost_between(
    place: Path, opened: Callable[[], Library], bgr: str
) -> None:
    stale = opened()
    with stale._writing(), pytest.raises(LockedError, match="is being written by another program"):
        Library.reembed(place, bgr, workers=0)

    def write_meanwhile(now: IndexProgress) -> None:
        with pytest.raises(LockedError):
            opened().index(workers=0)
        if now.done == 5 and "Carl" not in stale.people:
            stale.people.add_photos("Carl", [stale.people.examples("Ben")[0].source + "#3"])  # type: ignore[operator]

    Library.reembed(place, bgr, workers=0, progress=write_meanwhile)
    assert {person.name for person in opened().people} == {"Anna", "Ben", "Carl"}
    assert stale._database.is_gone
    with pytest.raises(LockedError, match="was replaced by another program"):
        stale.people.rename("Carl", "Charles")


def test_forgetting_reaches_what_is_under_way(
    place: Path, opened: Callable[[], Library], photos: Path, bgr: str
) -> None:
    seen: list[IndexProgress] = []
    Library.reembed(place, bgr, workers=0, progress=seen.append, should_stop=lambda: len(seen) >= 3)
    assert (place / "reembedded").is_dir()
    opened().forget([photos / "2016"])
    assert not (place / "reembedded").exists()
    Library.reembed(place, bgr, workers=0, progress=seen.append, should_stop=lambda: len(seen) >= 5)
    opened().forget_everything()
    assert not place.exists()


def test_what_nobody_goes_on_with_is_deleted_after_a_week(
    place: Path, opened: Callable[[], Library], bgr: str
) -> None:
    seen: list[IndexProgress] = []
    Library.reembed(place, bgr, workers=0, progress=seen.append, should_stop=lambda: len(seen) >= 3)
    opened().index(workers=0)
    assert (place / "reembedded").is_dir()
    os.utime(place / "reembedded", (0, 0))
    opened().index(workers=0)
    assert not (place / "reembedded").exists()


def test_files_stay_private(place: Path, bgr: str) -> None:
    Library.reembed(place, bgr, workers=0)
    assert not [path for path in place.rglob("*") if path.stat().st_mode & 0o077]


def test_a_backup_can_be_described_too_and_old_descriptors_are_gone_from_the_database(
    place: Path, opened: Callable[[], Library], bgr: str
) -> None:
    old = [e.descriptor.tobytes() for e in opened().people.examples("Anna")]
    Library.reembed(place, bgr, workers=0)
    with sqlite3.connect(place / "library.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    assert not any(vector in (place / "library.db").read_bytes() for vector in old)


def test_real_models(place: Path, opened: Callable[[], Library]) -> None:
    try:
        load_descriptor("edgeface-s")
    except ModelError as error:
        pytest.skip(str(error))
    before = state(opened())
    assert Library.reembed(place, "edgeface-s", workers=0).ok
    library = opened()
    assert library.dim == 512
    assert state(library) == before
    assert library.set_index.logistic.threshold == pytest.approx(0.38, abs=0.01)
    assert {hit.path.name for hit in library.search(["Anna", "Ben"], at_least=2)} == {"pair.jpg", "three.jpg"}


def test_labels_ids_and_undo_outlive_another_model(
    library: Library, portrait: Callable[[str], str], tmp_path: Path
) -> None:
    photos: dict[str, LibraryPhoto] = {photo.path.name: photo for photo in library.photos.all_photos()}
    library.people.add_photos("Anna", [portrait("P001"), portrait("P003")])
    library.people.confirm("Anna", photos["pair.jpg"].id, 0)
    library.people.reject("Anna", photos["three.jpg"].id, 2)
    library.people.remove_examples("Anna", [2])
    anna = library.people.get("Anna")
    labels = [(v.is_match, v.photo_id, v.face) for v in library.people.labels("Anna")]
    history = [change.summary for change in library.people.history()]
    library.close()

    model = write_small_model(tmp_path / "small.onnx")
    calibration = {"w": 20.0, "b": -8.0}
    small = str(write_model_entry(model, name="small", dim=24, calibration=calibration))
    Library.reembed(library.path, small, workers=0)

    with Library.open(library.path) as again:
        assert again.check() == []
        assert (again.people.get("Anna").id, again.people.get("Anna").examples) == (anna.id, anna.examples)
        kept = again.people.labels("Anna")
        assert [(v.is_match, v.photo_id, v.face) for v in kept] == labels
        for label in kept:
            assert label.photo_id is not None
            described = again.photos.descriptors(label.photo_id)[label.face]
            np.testing.assert_allclose(label.descriptor, described, atol=1e-6)
        assert [change.summary for change in again.people.history()] == history
        again.people.undo()
        assert again.people.descriptors("Anna").shape == (anna.examples + 1, 24)
        assert again.check() == []
