from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from setnet.cli.photos import app
from setnet.errors import InvalidInputError, NotAnIndexError


@pytest.fixture
def folder(tmp_path: Path, _people: None) -> Path:
    """Two photos of different people and a small copy of the first."""
    from setnet.cli.demo_album import picture

    photos = tmp_path / "photos"
    photos.mkdir()
    for person in ("P001", "P003"):
        Image.fromarray(picture(person, "amateur_selfie")).resize((424, 632)).save(photos / f"{person}.jpg")
    Image.open(photos / "P001.jpg").resize((212, 316)).save(photos / "a copy.jpg")
    return photos


def test_groups_are_printed_as_json_with_the_largest_first(folder: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["duplicates", str(folder), "--workers", "0", "--json"])
    assert done.exit_code == 0, done.output
    groups = [[str(folder / "P001.jpg"), str(folder / "a copy.jpg")]]
    assert json.loads(done.stdout) == {"groups": groups, "failed": []}


def test_a_broken_photo_is_named_and_the_exit_status_says_so(folder: Path) -> None:
    (folder / "broken.jpg").write_bytes(b"no photo")
    done = CliRunner().invoke(app, ["duplicates", str(folder), "--workers", "0"])
    assert done.exit_code == 1
    assert "a copy.jpg" in done.stdout
    assert "broken.jpg" in done.stderr


def test_no_copies_are_the_exit_status_1(folder: Path) -> None:
    done = CliRunner().invoke(
        app, ["duplicates", str(folder / "P001.jpg"), str(folder / "P003.jpg"), "--workers", "0"]
    )
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no copies found" in done.stderr


def test_wrong_use_is_refused_before_any_work(folder: Path, tmp_path: Path) -> None:
    for arguments, error in (
        ([str(folder / "gone")], InvalidInputError),
        (["--library", str(tmp_path / "none")], NotAnIndexError),
    ):
        assert isinstance(CliRunner().invoke(app, ["duplicates", *arguments]).exception, error)
