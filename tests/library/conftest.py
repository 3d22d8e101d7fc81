"""A small album of synthetic people and a library of it, made once per test process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from setnet.library import Library

pytest.importorskip("openpeople", reason="the demo's synthetic people are needed: pip install 'setnet[demo]'")

# Who is in which photo; names sort in this order.
ALBUM = {
    "2016/pair.jpg": ("P001", "P003"),
    "2016/alone.jpg": ("P003",),
    "2019/three.jpg": ("P005", "P001", "P003"),
    "2019/others.jpg": ("P005", "P007"),
    "2019/nobody.jpg": (),
}
TAKEN = {"2016": "2016:07:14 18:30:00", "2019": "2019:01:02 03:04:05"}


def _compose(path: Path, people: tuple[str, ...], tile: int = 1, taken: str | None = None) -> None:
    """Write a photo with these people from left to right."""
    from setnet.cli.demo.cutouts import bust

    canvas = np.full((300, max(2, len(people)) * 270, 3), (70, 100, 120), np.uint8)
    for number, person in enumerate(people):
        cutout = bust(person, tile + number)
        rows, columns = min(300, len(cutout.alpha)), min(270, cutout.alpha.shape[1])
        middle = (cutout.alpha.shape[1] - columns) // 2
        part = np.s_[:rows, middle : middle + columns]
        place = canvas[300 - rows :, number * 270 : number * 270 + columns]
        alpha = cutout.alpha[part][..., None]
        place[:] = (place * (1 - alpha) + cutout.pixels[part] * alpha).astype(np.uint8)
    exif = Image.Exif()
    if taken:
        exif[0x0132] = taken
        exif.get_ifd(0x8769)[0x9003] = taken
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(canvas).save(path, quality=92, exif=exif)


def make_photos(folder: Path) -> None:
    for name, people in ALBUM.items():
        _compose(folder / name, people, taken=TAKEN[name[:4]])


@pytest.fixture(scope="session")
def compose() -> Callable[..., None]:
    """Return the function that writes a photo with given people."""
    return _compose


@pytest.fixture(scope="session")
def portrait(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return the function that gives the path of a person's portrait, smaller than it comes: time matters."""
    from setnet.cli.demo.cutouts import portrait_path

    place = tmp_path_factory.mktemp("portraits")

    def path_of(person: str) -> str:
        path = place / person / "studio_portrait.jpg"
        if not path.is_file():
            path.parent.mkdir()
            Image.open(portrait_path(person)).resize((512, 512)).save(path)
        return str(path)

    return path_of


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    make_photos(place / "photos")
    (place / "photos" / "broken.jpg").write_bytes(b"this is no photo")
    with Library.create(place / "library") as library:
        library.index([place / "photos"], workers=0)
    return place


@pytest.fixture(scope="session")
def album(_made: Path) -> Path:
    """The folder of photos that `shared` knows; not to be changed."""
    return _made / "photos"


@pytest.fixture(scope="session")
def shared(_made: Path) -> Iterator[Library]:
    """A library of the album; not to be changed."""
    with Library.open(_made / "library") as library:
        yield library


@pytest.fixture
def photos(tmp_path: Path, _made: Path) -> Path:
    """A copy of the photos that a test may change; `library` knows them at this place."""
    shutil.copytree(_made / "photos", tmp_path / "photos")
    return tmp_path / "photos"


@pytest.fixture
def library(tmp_path: Path, photos: Path) -> Iterator[Library]:
    """A library of `photos` that a test may change."""
    with Library.create(tmp_path / "library") as made:
        made.index([photos], workers=0)
        yield made
