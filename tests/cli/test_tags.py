"""Face tags of other programs on the command line: read, and written to sidecars."""

from __future__ import annotations

from pathlib import Path

import pytest

from setnet.library import Library
from tests.support.command_line import answered, called
from tests.support.invented_photos import area_of, store_file
from tests.support.tag_files import lightroom

ANNA = lightroom({"Anna": area_of(1)}, (1600, 1200))


@pytest.fixture(autouse=True)
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two photos of one person, who is tagged in the first."""
    monkeypatch.setenv("SETNET_LIBRARY", str(tmp_path / "library"))
    with Library.create(tmp_path / "library") as library:
        store_file(library, tmp_path / "photos" / "a.jpg", [1], ANNA)
        store_file(library, tmp_path / "photos" / "b.jpg", [1])
    return tmp_path / "photos"


def test_tags_come_in_and_go_out(photos: Path) -> None:
    assert "would get a name, of 1 person (1 new)" in called("people", "import-tags", "--dry-run")[0]
    assert "Anna: 1" in called("people", "import-tags", photos)[0]
    assert answered("people", "import-tags")["known"] == 1
    assert "1 region would be written to 1 new sidecar" in called("tags", "write", "--dry-run")[0]
    assert answered("tags", "write", "anna")["created"] == [f"{photos}/b.jpg.xmp"]
    assert "2 photos had all names already" in called("tags", "write")[0]
    assert answered("people", "history")["changes"][0]["kind"] == "import tags"
    called("people", "undo")
    assert answered("people", "list")["people"] == []


def test_what_cannot_be_read_is_said_with_a_status(photos: Path) -> None:
    (photos / "b.xmp").write_bytes(b"<!DOCTYPE a><a>schemas/regions/</a>")
    (photos / "a.jpg.xmp").write_bytes(lightroom({"Ben": (0.9, 0.9, 0.1, 0.1)}))
    said = called("people", "import-tags", code=1)[1]
    assert f"could not be read: {photos}/b.xmp: has a document type declaration" in said
    assert f"no face was found at the region of Ben in {photos}/a.jpg" in said
    done = answered("tags", "write", "--update", code=1)
    assert [failed["file"] for failed in done["failed"]] == [f"{photos}/b.xmp"]


def test_sidecars_that_exist_are_mentioned(photos: Path) -> None:
    called("people", "import-tags")
    (photos / "b.xmp").write_text("<mine/>")
    assert "1 existing sidecar without these names: --update adds them" in called("tags", "write")[1]
    assert "no person 'Zoe'" in called("tags", "write", "Zoe", code=2)[1]
