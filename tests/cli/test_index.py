"""`setnet index` over time: photos that are gone, patterns, watched folders, faces described again."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from PIL import Image

from setnet.errors import LockedError
from setnet.faces.registry import write_model_entry
from setnet.library import Library, folder_watch
from tests.support.command_line import answered, called, setnet
from tests.support.small_models import write_small_model


def add(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        Image.new("RGB", (32, 32), (number, len(list(folder.iterdir())), 0)).save(folder / name)


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of twelve photos in which nobody is, and a library that knows them."""
    monkeypatch.setenv("SETNET_LIBRARY", str(tmp_path / "library"))
    add(tmp_path / "photos", *(f"{number:02}.png" for number in range(12)))
    report = answered("index", tmp_path / "photos", "--detector", "yunet", "--workers", 0)
    assert report["added"] == 12
    return tmp_path / "photos"


def test_a_tenth_goes_unasked_and_more_only_with_yes(photos: Path) -> None:
    (photos / "00.png").unlink()
    assert answered("index", "--prune")["removed"] == 1
    for name in ("01.png", "02.png"):
        (photos / name).unlink()
    said = called("index", "--prune", code=1)[1]
    assert "2 of 11 photos are gone or excluded: so many are removed with --prune --yes only" in said
    assert answered("index", "--prune", "--yes")["removed"] == 2


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_asks(photos: Path, monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    for name in ("01.png", "02.png"):
        (photos / name).unlink()
    asked: list[str] = []

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return answer

    monkeypatch.setattr(typer, "confirm", confirm)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert answered("index", "--prune")["removed"] == 2 * answer
    assert asked == ["2 of 12 photos are gone or excluded. Remove them from the library?"]


def test_patterns_are_remembered_and_said(photos: Path) -> None:
    report = answered("index", "--exclude", "0*", "--exclude", "raw")
    assert (report["scanned"], report["excluded"]) == (2, ["0*", "raw"])
    assert "left out: 0*, raw (--exclude '' ends that)" in called("index")[1]
    assert answered("index", "--exclude", "")["scanned"] == 12


def test_an_unplugged_disk_is_said_with_a_status(photos: Path) -> None:
    photos.rename(photos.with_name("unplugged"))
    said = called("index", "--prune", "--yes", code=1)[1]
    assert f"skipped: {photos}: is not there (is its disk plugged in?)" in said
    assert answered("status")["photos"] == 12


def test_a_watch_indexes_what_changes_until_it_is_stopped(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[list[Path]] = []
    index = Library.index

    def changes(*_: object) -> Iterator[list[Path]]:
        yield [photos]
        add(photos, "new.png")
        yield [photos]
        yield []  # the run was refused: it is made up for
        yield []
        raise KeyboardInterrupt

    def busy_at_first(self: Library, folders: list[Path], **options: object) -> object:
        runs.append(folders)
        if len(runs) == 3:
            raise LockedError("somebody is writing")
        return index(self, folders, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(folder_watch, "changed_folders", changes)
    monkeypatch.setattr(Library, "index", busy_at_first)
    out, err = called("index", photos, "--watch", "--workers", 0, code=130)
    assert runs == [[photos]] * 4
    assert out.count("photos seen") == 2  # the first run, and the one with something new
    assert "1 new" in out
    assert "waiting: somebody is writing" in err
    assert "stopped watching" in err


def test_without_watchfiles_nothing_is_begun(monkeypatch: pytest.MonkeyPatch, photos: Path) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    out, err = called("index", photos, "--watch", code=2)
    assert "pip install 'setnet[app]'" in err
    assert not out


@pytest.fixture
def library(made: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.library, tmp_path / "library"))


@pytest.fixture
def small(tmp_path: Path) -> str:
    model = write_small_model(tmp_path / "small.onnx")
    return str(write_model_entry(model, name="small", dim=24, calibration={"w": 20.0, "b": -8.0}))


def test_the_descriptor_of_a_library_is_changed(library: Path, small: str) -> None:
    refused = setnet(library, "index", "--descriptor", small)
    assert refused.returncode == 2
    assert f"--reembed --descriptor {small}" in refused.stderr
    done = setnet(library, "index", "--reembed", "--descriptor", small, "--workers", 0)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5 photos seen, 0 new, 5 changed; 8 faces found in ")
    status = json.loads(setnet(library, "status", "--json").stdout)
    assert (status["dim"], status["photos"], status["settings"]["descriptor"]) == (24, 5, small)
    again = setnet(library, "index", "--reembed", "--descriptor", small, "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["unchanged"] == 5


def test_what_does_not_go_with_it_is_refused(library: Path, small: str, tmp_path: Path) -> None:
    for words in (["--quick"], ["--detector", "yunet"], ["--min-face", "60"], ["--retry"], [tmp_path]):
        done = setnet(library, "index", "--reembed", "--descriptor", small, *words)
        assert done.returncode == 2
        assert "leave out" in done.stderr
    assert setnet(library, "index", "--reembed", "--descriptor", "nobody").returncode == 2
    assert setnet(tmp_path / "absent", "index", "--reembed").returncode == 2


def test_what_could_not_be_described_is_listed(made: Any, tmp_path: Path, small: str) -> None:
    from setnet.library import Library

    photos = Path(shutil.copytree(made.photos, tmp_path / "photos"))
    with Library.create(tmp_path / "own") as library:
        library.index([photos], workers=0)
        library.people.add_photos("Anna", [str(photos / "2016" / "alone.jpg")])
    photo = photos / "2016" / "pair.jpg"
    photo.write_bytes(photo.read_bytes() + b"x")
    done = setnet(tmp_path / "own", "index", "--reembed", "--descriptor", small, "--workers", 0, "--json")
    assert done.returncode == 1
    facts = json.loads(done.stdout)
    assert facts["failed"] == [
        {"photo": str(photo), "reason": "its content has changed since it was indexed"}
    ]
    assert facts["lost"] == []
