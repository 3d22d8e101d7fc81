"""Videos in a library: indexed like photos, each shot an item, and followed when files move or change."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.library import Conditions, Library, LibraryPhoto
from setnet.library.photo_reader import PhotoReader
from setnet.library.pictures import SPRITE
from setnet.video.sprite import LARGEST_SPRITE
from tests.support.clips import Scene, write_clip

SCENES = (Scene(("P001", "P003")), Scene(("P005",), 2.0, (140, 60, 40)))


@pytest.fixture(scope="module")
def made_once(_people: None, compose: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a clip, a photo and a broken video, and a library of them."""
    place = tmp_path_factory.mktemp("videos")
    write_clip(place / "photos" / "films" / "party.mp4", SCENES)
    compose(place / "photos" / "pair.jpg", ("P001", "P010"))
    (place / "photos" / "broken.mov").write_bytes(b"this is no video")
    with Library.create(place / "library") as library:
        report = library.index([place / "photos"], workers=0)
        assert (report.added, report.shots, len(report.failed)) == (2, 2, 1)
        assert report.minutes == pytest.approx(4 / 60, abs=0.01)
        assert "2 shots" in report.summary
    return place


@pytest.fixture
def place(made_once: Path, tmp_path: Path) -> Path:
    """A copy that a test may change, of which the library knows the new place."""
    shutil.copytree(made_once, tmp_path / "copy")
    with Library.open(tmp_path / "copy" / "library") as library:
        library.forget([made_once / "photos"])
        library.index([tmp_path / "copy" / "photos"], workers=0)
    return tmp_path / "copy"


@pytest.fixture
def library(place: Path) -> Iterator[Library]:
    """The library of `place`."""
    with Library.open(place / "library") as opened:
        yield opened


def ids(library: Library) -> dict[str, str]:
    return {photo.id: photo.path.name for photo in library.photos.all_photos()}


def test_a_shot_is_an_item_with_its_times(made_once: Path) -> None:
    with Library.open(made_once / "library") as library:
        first, second = library.photos.video_shots(os.fsencode(made_once / "photos/films/party.mp4"))
        assert [round(t) for t in (first.start or 0, first.stop or 0, second.stop or 0)] == [0, 2, 4]
        assert (first.kind, first.path.name) == ("video", "party.mp4")
        assert [len(shot.faces) for shot in (first, second)] == [2, 1]
        assert len(library.photos.descriptors(first.id)) == 2
        face = second.faces[0]
        assert (face.at or 0.0) >= (second.start or 9.0)
        assert face.track.shape[1] == 5
        said = first.to_dict()
        assert (said["kind"], said["from"]) == ("video", 0.0)
        assert said["faces"][0].keys() == {"box", "at", "seen"}
        assert first.content != second.content
        assert library.photos.counts().shots == 2
        assert [failed.path.name for failed in library.photos.failures()] == ["broken.mov"]
        assert library.check() == []
        assert library.photos.thumbnail(second.id, 64)[:2] == b"\xff\xd8"
        assert library.photos.face_thumbnail(second.id, 0, 64)[:2] == b"\xff\xd8"


def test_a_sprite_is_made_with_the_shot_and_goes_with_it(place: Path, library: Library) -> None:
    video = place / "photos/films/party.mp4"
    shutil.rmtree(place / "library" / "thumbnails", ignore_errors=True)
    write_clip(video, [*SCENES, Scene(("P010",), 2.0, (20, 30, 160))])
    library.index(workers=0)
    shots = library.photos.video_shots(os.fsencode(video))
    assert len(shots) == 3

    def not_drawn(photo: LibraryPhoto) -> bytes:
        raise AssertionError("drawn when it was asked for")

    for shot in shots:
        sprite = library.photos.picture(shot, SPRITE, not_drawn)
        assert 500 < len(sprite) <= LARGEST_SPRITE
        pixels = cv2.imdecode(np.frombuffer(sprite, np.uint8), cv2.IMREAD_COLOR)
        assert pixels is not None
        assert pixels.shape == (120, 6 * 213, 3)
        walls = pixels[10, 20::213].astype(int)
        assert np.abs(walls - walls[0]).max() < 60  # all of one shot
    library.forget([video])
    assert not list((place / "library" / "thumbnails").rglob("*sprite*"))


def test_answers_mix_photos_and_shots(made_once: Path, portrait_file: Callable[[str], Path]) -> None:
    with Library.open(made_once / "library") as library:
        hits = library.search([str(portrait_file("P001"))], at_least=1)
        assert {hit.photo.kind for hit in hits} == {"photo", "video"}
        (shot,) = [hit.to_dict() for hit in hits if hit.photo.kind == "video"]
        assert shot["photo"].endswith("party.mp4")
        assert (shot["kind"], shot["from"], round(shot["to"])) == ("video", 0.0, 2)


def test_what_is_unchanged_is_not_read_again_and_moves_are_followed(place: Path, library: Library) -> None:
    before = ids(library)
    report = library.index(workers=0)
    assert (report.unchanged, report.added) == (3, 0)
    shutil.move(place / "photos/films/party.mp4", place / "photos/renamed.mp4")
    report = library.index(workers=0)
    assert (report.moved, report.shots, report.vanished) == (1, 0, ())
    after = ids(library)
    assert after.keys() == before.keys()
    assert sorted(after.values()) == ["pair.jpg", "renamed.mp4", "renamed.mp4"]
    shutil.copy(place / "photos/renamed.mp4", place / "photos/twice.mp4")
    assert library.index(workers=0).copied == 1
    assert library.check() == []
    assert len(library.photos.video_shots(os.fsencode(place / "photos/twice.mp4"))) == 2


def test_a_video_that_changed_leaves_none_of_its_old_shots(place: Path, library: Library) -> None:
    write_clip(place / "photos/films/party.mp4", [Scene(("P010",), 3.0)])
    report = library.index(workers=0)
    assert (report.changed, report.shots) == (1, 1)
    assert sorted(ids(library).values()) == ["pair.jpg", "party.mp4"]
    assert len(library.set_index) == 2
    (place / "photos/films/party.mp4").write_bytes(b"broken now")
    assert len(library.index(workers=0).failed) == 1
    assert list(ids(library).values()) == ["pair.jpg"]
    assert library.check() == []


def test_pruned_and_forgotten(place: Path, library: Library) -> None:
    video = place / "photos/films/party.mp4"
    content = video.read_bytes()
    video.unlink()
    assert [path.name for path in library.index(workers=0).vanished] == ["party.mp4"]
    assert library.index(workers=0, prune=True).removed == 1
    assert list(ids(library).values()) == ["pair.jpg"]
    video.write_bytes(content)
    library.index(workers=0)
    assert library.forget([video]) == 2
    assert list(ids(library).values()) == ["pair.jpg"]
    assert library.check() == []


def test_the_moving_part_of_a_live_photo_is_no_item(place: Path, library: Library) -> None:
    identifier = b"com.apple.quicktime.content.identifier"
    box = (len(identifier) + 8).to_bytes(4, "big") + b"moov" + identifier
    (place / "photos/pair.mov").write_bytes(box)
    (place / "photos/alone.mov").write_bytes(box)
    report = library.index(workers=0)
    assert [path.name for path, _ in report.failed] == ["alone.mov"]


def test_worker_processes_find_the_same(made_once: Path, tmp_path: Path) -> None:
    with Library.open(made_once / "library") as known, Library.create(tmp_path / "library") as library:
        library.index([made_once / "photos"], workers=1)
        video = os.fsencode(made_once / "photos/films/party.mp4")
        mine, theirs = (each.photos.video_shots(video) for each in (library, known))
        assert [(s.start, s.stop, s.content) for s in mine] == [(s.start, s.stop, s.content) for s in theirs]
        assert [len(s.faces) for s in mine] == [len(s.faces) for s in theirs]


def test_kinds_can_be_told_apart(made_once: Path, portrait_file: Callable[[str], Path]) -> None:
    people = [str(portrait_file(name)) for name in ("P001", "P005")]
    with Library.open(made_once / "library") as library:
        for kind in ("photo", "video"):
            answer = library.search(people, at_least=1, conditions=Conditions(kind=kind), totals=True)
            assert {hit.photo.kind for hit in answer.hits} == {kind}
            assert sum(total.photos for total in answer.totals or ()) == len(answer.hits)
        with pytest.raises(InvalidInputError, match="valid are 'photo', 'video'"):
            Conditions(kind="film")


def test_the_people_of_shots_can_be_described_again_unless_the_video_changed(
    place: Path, library: Library
) -> None:
    video = place / "photos/films/party.mp4"
    shots = library.photos.video_shots(os.fsencode(video))
    with PhotoReader(library.settings, 0) as reader:
        for photo, vectors in reader.describe(shots):
            assert not isinstance(vectors, str)
            alike = (vectors * library.photos.descriptors(photo.id)).sum(axis=1)
            assert alike.min() > 0.6  # one picture of each, beside the mean of several
        video.write_bytes(b"another video")
        assert [why for _, why in reader.describe(shots)] == [
            "its content has changed since it was indexed"
        ] * len(shots)
