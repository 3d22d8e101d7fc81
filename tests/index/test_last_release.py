"""An index that the last release wrote opens, answers as it did, and is brought up to date in one step."""

from __future__ import annotations

import json
import logging
import os
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

from setnet import SetIndex

FIXTURE = Path(__file__).parent / "fixtures" / "index_v1.zip"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The index as it was left, readable for everybody."""
    shutil.unpack_archive(FIXTURE, tmp_path)
    path = tmp_path / "index"
    for part in (path, *path.rglob("*")):
        part.chmod(0o755 if part.is_dir() else 0o644)
    return path


@pytest.fixture
def recorded(old: Path) -> Any:
    return json.loads((old.parent / "answers.json").read_text())


SCRIPT = runpy.run_path(str(FIXTURE.with_name("make_index_v1.py")))


def in_json(index: SetIndex) -> Any:
    """Return what the script that made the fixture recorded, from the index as it is now."""
    return json.loads(json.dumps(SCRIPT["answers"](index)))


def query() -> Any:
    return SCRIPT["vectors"](99, 2)


def modes(path: Path) -> set[int]:
    return {part.stat().st_mode & 0o777 for part in (path, *path.rglob("*"))}


def test_a_reader_gets_the_recorded_answers_and_changes_nothing(old: Path, recorded: Any) -> None:
    before = {path: path.stat().st_mtime_ns for path in old.rglob("*.se*")}
    with SetIndex.open(old, read_only=True) as index:
        assert in_json(index) == recorded
    assert {path: path.stat().st_mtime_ns for path in old.rglob("*.se*")} == before
    assert not (old / "commits.log").exists()


def test_the_first_writer_brings_it_up_to_date(old: Path, recorded: Any) -> None:
    with SetIndex.open(old) as index:
        assert in_json(index) == recorded
    assert (old / "commits.log").exists()
    with SetIndex.open(old, read_only=True) as index:
        assert in_json(index) == recorded
    (old / "catalog.sqlite").unlink()
    report = SetIndex.repair(old)
    assert report.revived == 0, "the log says what was deleted before the update"
    with SetIndex.open(old) as index:
        index.tag({"anna": query()[0], "ben": query()[1]}, threshold=0.4)  # tags are in the catalogue only
        assert in_json(index) == recorded
        index.compact()
        assert {item.id for item in index.items()} == {item[0] for item in recorded["items"]}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_files_that_others_could_read_are_restricted_with_one_notice(
    old: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "setnet.index"):
        SetIndex.open(old, read_only=True).close()
        assert modes(old) == {0o755, 0o644}
        SetIndex.open(old).close()
        SetIndex.open(old).close()
    assert [("could be read by others" in m, str(old) in m) for m in caplog.messages] == [(True, True)]
    assert modes(old) == {0o700, 0o600}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_an_index_shared_with_a_group_stays_shared(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    for part in (old, *old.rglob("*")):
        part.chmod(0o750 if part.is_dir() else 0o640)
    for _ in range(2):  # what the first writer adds follows at the next opening
        SetIndex.open(old).close()
    assert modes(old) == {0o750, 0o640}
    assert not caplog.messages


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_new_index_in_a_folder_that_was_there_is_private(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "i").mkdir()
    (tmp_path / "i").chmod(0o755)
    SetIndex.create(tmp_path / "i", 4).close()
    assert modes(tmp_path / "i") == {0o700, 0o600}
    assert not caplog.messages
