"""Libraries of the album, of invented photos and of photos that do not exist, shared or one for each test."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from setnet.faces import FaceSettings
from setnet.library import Example, Library, People, StoredFace
from setnet.library.creation import remember_folders
from setnet.library.database import Database
from setnet.library.photo_reader import PhotoReader, PhotoResult, PhotoTask
from setnet.library.photo_writer import PhotoWriter
from tests.support import invented_photos


@pytest.fixture(scope="session")
def portrait(portrait_file: Callable[[str], Path]) -> Callable[[str], str]:
    """Return the function that gives the path of a person's portrait."""
    return lambda person: str(portrait_file(person))


@pytest.fixture(scope="session")
def album(made: Any) -> Path:
    """The folder of photos that `shared` knows; not to be changed."""
    photos: Path = made.photos
    return photos


@pytest.fixture(scope="session")
def shared(made: Any) -> Iterator[Library]:
    """A library of the album; not to be changed."""
    with Library.open(made.library) as library:
        yield library


@pytest.fixture
def photos(tmp_path: Path, album: Path) -> Path:
    """A copy of the photos that a test may change; `library` knows them at this place."""
    shutil.copytree(album, tmp_path / "photos")
    return tmp_path / "photos"


@pytest.fixture(scope="session")
def album_results(album: Path) -> dict[str, PhotoResult]:
    """What is found in each file of the album, by its path in it: found once per test process."""
    files = [path for path in album.rglob("*") if path.is_file()]
    with PhotoReader(FaceSettings(), 0) as reader:
        results = reader.results(PhotoTask(os.fsencode(path)) for path in files)
        return {str(Path(os.fsdecode(r.path)).relative_to(album)): r for r in results}


@pytest.fixture
def reading_known(
    photos: Path, album_results: dict[str, PhotoResult], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], AbstractContextManager[None]]:
    """What is in each photo of the album is known inside a block, so that no faces are looked for."""

    def results(_: PhotoReader, tasks: Iterable[PhotoTask], *__: object) -> Iterator[PhotoResult]:
        for task in tasks:
            path = Path(os.fsdecode(task.path))
            found = album_results[str(path.relative_to(photos))]
            yield replace(found, path=task.path, mtime_ns=path.stat().st_mtime_ns)

    @contextmanager
    def known() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(PhotoReader, "results", results)
            yield

    return known


@pytest.fixture
def library(
    tmp_path: Path, photos: Path, reading_known: Callable[[], AbstractContextManager[None]]
) -> Iterator[Library]:
    """A library of `photos` that a test may change; its photos were read once per test process."""
    with Library.create(tmp_path / "library") as made:
        with reading_known():
            made.index([photos], workers=0)
        yield made


Pixels = NDArray[np.uint8]
PEOPLE = ("P001", "P003", "P005", "P010")


@pytest.fixture(scope="session")
def selfie(_people: None) -> Callable[[str], Pixels]:
    """Return the function that gives a photo of a person, smaller than it comes."""
    from setnet.cli.demo_album import picture

    def photo(person: str) -> Pixels:
        return np.asarray(Image.fromarray(picture(person, "amateur_selfie")).resize((424, 632)))

    return photo


@pytest.fixture
def planted(selfie: Callable[[str], Pixels], tmp_path: Path) -> Path:
    """A folder: four photos of different people, copies of two of them, a file that is no photo."""
    folder = tmp_path / "photos"
    (folder / "copies").mkdir(parents=True)
    for person in PEOPLE:
        Image.fromarray(selfie(person)).save(folder / f"{person}.jpg", quality=92)
    first, second = Image.open(folder / "P001.jpg"), Image.open(folder / "P003.jpg")
    first.resize((212, 316)).save(folder / "copies" / "small.jpg", quality=60)
    first.crop((30, 40, 404, 600)).save(folder / "copies" / "cropped.png")
    second.transpose(Image.Transpose.FLIP_LEFT_RIGHT).convert("L").save(folder / "copies" / "mirrored.jpg")
    (folder / "broken.jpg").write_bytes(b"this is no photo")
    return folder


Shown = Callable[[], dict[str, tuple[str | None, set[str]]]]


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Library]:
    """A library without photos."""
    with Library.create(tmp_path / "library") as library:
        yield library


@pytest.fixture
def grouped(empty: Library) -> Library:
    """Photos a0 to a5 of people 1 and 2, b0 to b3 of person 3, c0 of person 4; grouped: g1 to g4."""
    invented_photos.store(empty, {f"a{n}": [1, 2] for n in range(6)}, taken=1.5e9)
    invented_photos.store(empty, {f"b{n}": [3] for n in range(4)} | {"c0": [4]})
    assert empty.groups.update().groups == 4
    return empty


@pytest.fixture
def groups_in() -> Callable[[Library], dict[str, tuple[str | None, set[str]]]]:
    """Return the function that gives the name and the faces of each group, a face as photo and person."""

    def found(library: Library) -> dict[str, tuple[str | None, set[str]]]:
        return {
            group.id: (
                group.name,
                {
                    f"{face.path.decode().rpartition('/')[2]} {round(face.box.x0 / 100)}"
                    for face in library.groups.members(group.id)
                },
            )
            for group in library.groups.page()
        }

    return found


@pytest.fixture
def many(tmp_path: Path, compose: Callable[..., None]) -> Path:
    """Two dozen photos, no two alike."""
    for number in range(24):
        people = ("P001", "P003")[: 1 + number % 2]
        taken = f"2016:01:{number + 1:02} 12:00:00"
        compose(tmp_path / "many" / f"{number:02}.jpg", people, tile=number % 14, taken=taken)
    return tmp_path / "many"


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Library]:
    """A library of two folders with ten photos each in which nobody is."""
    for number in range(20):
        file = tmp_path / f"disk{number % 2}" / f"{number:02}.png"
        file.parent.mkdir(exist_ok=True)
        Image.new("RGB", (32, 32), (number, 0, 0)).save(file)
    with Library.create(tmp_path / "library", FaceSettings(detector="yunet")) as made:
        made.index([tmp_path / "disk0", tmp_path / "disk1"], workers=0)
        yield made


FOLDER = "/synthetic/photos"


def _photos() -> list[PhotoResult]:
    chance = np.random.default_rng(4)
    quality = json.dumps({"size": 60.0, "score": 0.99})
    found = []
    for number, faces in enumerate((1, 2, 0, 3)):
        vectors = chance.normal(size=(faces, 128)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        found.append(
            PhotoResult(
                f"{FOLDER}/{number}.jpg".encode(),
                size=1000 + number,
                mtime_ns=1_700_000_000_000_000_000 + number,
                hash=bytes([number]) * 16,
                taken=1.5e9 + number,
                width=640,
                height=480,
                faces=tuple(
                    StoredFace(n, 10.5 + 100 * n, 20, 70.5 + 100 * n, 90, 0.99, bytes(40), quality)
                    for n in range(faces)
                ),
                descriptors=vectors if faces else None,
            )
        )
    return found


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that `stored` copies."""
    path = tmp_path_factory.mktemp("stored") / "library"
    photos = _photos()
    with Library.create(path) as library:
        with library._writing() as index:
            remember_folders(library._database, [FOLDER.encode()])
            PhotoWriter(library._database, index).store(photos)
        assert photos[0].descriptors is not None
        library.people.add("Nobody", [Example(photos[0].descriptors[0], f"{FOLDER}/0.jpg", picture=b"JPEG")])
    return path


@pytest.fixture
def stored(made_once: Path, tmp_path: Path) -> Path:
    """A library of four photos with 1, 2, 0 and 3 faces, and of a person called Nobody."""
    return shutil.copytree(made_once, tmp_path / "library")


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    """The people of a database, with descriptors of four numbers."""
    database = Database(tmp_path / "library.db")
    yield invented_photos.people_alone(database)
    database.close()


@pytest.fixture
def invented(tmp_path: Path) -> Iterator[Library]:
    """A library with photos 1 of people 1 and 2, 2 of 1 and 3, 3 of 3; a person's face is at 100 x number."""
    with Library.create(tmp_path / "library") as library:
        invented_photos.store(library, {"a": [1, 2], "b": [1, 3], "c": [3]})
        yield library
