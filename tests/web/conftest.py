"""A small album of synthetic people, a library of it, and servers over copies of that library."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from setnet.library import Library
from setnet.web import WebSettings, create_app

pytest.importorskip("openpeople", reason="the demo's synthetic people are needed: pip install 'setnet[demo]'")

# Who is in which photo, from left to right.
ALBUM = {
    "2016/both.jpg": ("P001", "P003"),
    "2016/one.jpg": ("P003",),
    "2019/all.jpg": ("P005", "P001", "P003"),
    "2019/others.jpg": ("P005", "P010"),
    "2019/nobody.jpg": (),
}
TAKEN = {"2016": "2016:07:14 18:30:00", "2019": "2019:01:02 03:04:05"}
API = "/api/v1"


def compose(path: Path, people: tuple[str, ...], taken: str) -> None:
    from setnet.cli.demo.cutouts import bust

    canvas = np.full((300, max(2, len(people)) * 270, 3), (70, 100, 120), np.uint8)
    for number, person in enumerate(people):
        cutout = bust(person, 1 + number)
        rows, columns = min(300, len(cutout.alpha)), min(270, cutout.alpha.shape[1])
        middle = (cutout.alpha.shape[1] - columns) // 2
        part = np.s_[:rows, middle : middle + columns]
        place = canvas[300 - rows :, number * 270 : number * 270 + columns]
        alpha = cutout.alpha[part][..., None]
        place[:] = (place * (1 - alpha) + cutout.pixels[part] * alpha).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0132] = taken
    exif.get_ifd(0x8769)[0x9003] = taken
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(canvas).save(path, quality=92, exif=exif)


@dataclass(frozen=True)
class Made:
    """Photos and a library that knows them."""

    photos: Path
    library: Path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    place = tmp_path_factory.mktemp("web")
    for name, people in ALBUM.items():
        compose(place / "photos" / name, people, TAKEN[name[:4]])
    (place / "photos" / "broken.jpg").write_bytes(b"this is no photo")
    with Library.create(place / "library") as library:
        library.index([place / "photos"], workers=0)
    return Made(place / "photos", place / "library")


@pytest.fixture(scope="session")
def portrait() -> Callable[[str], bytes]:
    """Return the bytes of a person's portrait, made small: finding its face is not what is tested."""
    from io import BytesIO

    from setnet.cli.demo.cutouts import portrait_path

    def read(person: str) -> bytes:
        with Image.open(portrait_path(person)) as image:
            small = image.convert("RGB").resize((480, 480))
        buffer = BytesIO()
        small.save(buffer, "JPEG", quality=92)
        return buffer.getvalue()

    return read


@contextmanager
def client_of(library: Path, sets: Path, settings: WebSettings | None = None) -> Iterator[TestClient]:
    app = create_app(library, sets, settings)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def shared(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server over the album; tests leave its photos and folders as they are."""
    with client_of(made.library, tmp_path_factory.mktemp("sets")) as client:
        yield client


@pytest.fixture
def own(made: Made, tmp_path: Path) -> Iterator[TestClient]:
    """A server over a copy of the library that a test may change; its photos are the shared ones."""
    shutil.copytree(made.library, tmp_path / "library")
    with client_of(tmp_path / "library", tmp_path / "sets") as client:
        yield client


@pytest.fixture(scope="session")
def faces(shared: TestClient, portrait: Callable[[str], bytes]) -> dict[str, str]:
    """Face ids of three portraits in the shared server."""
    found = {}
    for person in ("P001", "P003", "P005"):
        answer = shared.post(f"{API}/faces", content=portrait(person), headers={"Content-Type": "image/jpeg"})
        assert answer.status_code == 200, answer.text
        found[person] = answer.json()["faces"][0]["id"]
    return found


@dataclass
class Running:
    """A real server in a process of its own."""

    url: str
    process: subprocess.Popen[str]
    banner: str

    def stop(self, patience: float = 30) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(patience)


@contextmanager
def server_on(library: Path, sets: Path, *options: str, **environment: str) -> Iterator[Running]:
    """Run `setnet serve` on a free port until the block ends."""
    command = [
        sys.executable,
        "-m",
        "setnet.cli",
        "serve",
        "--library",
        str(library),
        "--sets",
        str(sets),
        "--port",
        "0",
    ]
    process = subprocess.Popen(
        [*command, *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert process.stderr is not None
    try:
        banner = ""
        while "\n  stop " not in banner:
            line = process.stderr.readline()
            assert line, f"the server ended: {banner}"
            banner += line
        url = next(word for word in banner.split() if word.startswith("http")).split("#")[0].rstrip("/")
        _wait_until_up(url)
        yield Running(url, process, banner)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()


def _wait_until_up(url: str) -> None:
    for _ in range(200):
        try:
            if httpx.get(f"{url}/healthz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the server does not answer")


@pytest.fixture(scope="session")
def running(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A real server over a copy of the library, shared by the tests of one process."""
    place = tmp_path_factory.mktemp("running")
    shutil.copytree(made.library, place / "library")
    with server_on(place / "library", place / "sets") as server:
        yield server


@pytest.fixture(scope="session")
def start_server() -> Callable[..., object]:
    """Return the function that runs a real server."""
    return server_on


@pytest.fixture(scope="session")
def open_client() -> Callable[..., object]:
    """Return the function that opens a server inside the test's process."""
    return client_of
