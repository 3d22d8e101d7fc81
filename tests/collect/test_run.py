from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.collect import CollectRun, run_status, run_step
from setnet.collect.run import Manifest, Row
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError, StorageError, VersionError
from tests.support.invented_collect import invented_run
from tests.support.soak import examples


def test_a_new_run_needs_portraits_and_photos_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="--portraits"):
        CollectRun.begin(tmp_path / "run")
    with pytest.raises(InvalidInputError, match="no folder"):
        CollectRun.begin(tmp_path / "run", portraits=tmp_path / "none", photos=[tmp_path])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(InvalidInputError, match="other files"):
        CollectRun.begin(tmp_path / "full", portraits=tmp_path, photos=[tmp_path])
    with pytest.raises(NotAnIndexError, match="holds no run"):
        CollectRun.open(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"split": (0.5, 0.5, 0.5)}, "add up to 1"),
        ({"accept_other": 1.5}, "accept_other"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CollectRun.begin(tmp_path / "run", portraits=tmp_path, photos=[tmp_path], **settings)


def test_a_changed_setting_leaves_only_the_steps_that_need_it_to_do_again(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 3, [(0, 1, 10)])
    states = {step.name: step.state for step in run_status(run).steps}
    assert set(states.values()) - {"to do"} == {"done"}
    changed = CollectRun.begin(run.path, accept_query=0.3)
    states = {step.name: step.state for step in run_status(changed).steps}
    assert [name for name, state in states.items() if state == "to do again"] == ["labels"]
    assert not run_step(changed, "labels").was_done
    assert run_step(changed, "labels").was_done


def test_a_step_says_which_earlier_one_it_needs(tmp_path: Path) -> None:
    run = CollectRun.begin(tmp_path / "run", portraits=tmp_path, photos=[tmp_path])
    with pytest.raises(InvalidInputError, match="needs step names"):
        run_step(run, "portraits")
    with pytest.raises(InvalidInputError, match="unknown step"):
        run_step(run, "everything")


def test_two_processes_do_not_work_on_one_run(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 3, [(0, 1, 10)])
    with run.locked(), pytest.raises(LockedError, match="another process"):
        run_step(CollectRun.open(run.path), "labels", again=True)


ROWS: list[Row] = [{"photo": f"{n}.jpg", "kept": n % 2 == 0, "reason": "odd"} for n in range(7)]


def write(manifest: Manifest, rows: Iterable[Row] = ROWS, made_from: str = "x") -> set[str]:
    """Write rows; return the keys of those that were there."""
    found: set[str] = set()

    def make_rows(done: set[str]) -> Iterable[Row]:
        found.update(done)
        return rows

    manifest.write({"from": made_from}, "photo", make_rows)
    return found


def interrupted(rows: Iterable[Row]) -> Iterator[Row]:
    yield from rows
    raise KeyboardInterrupt


def test_rows_come_back_in_order_with_their_counts(tmp_path: Path) -> None:
    manifest = Manifest(tmp_path, "m")
    write(manifest)
    assert list(manifest.rows()) == ROWS
    summary = manifest.summary()
    assert (summary.rows, summary.kept, dict(summary.reasons)) == (7, 4, {"odd": 3})
    assert manifest.provenance() == {"from": "x"}


@settings(max_examples=examples(10))  # each waits for the disk several times
@given(st.data())
def test_a_manifest_cut_anywhere_is_continued_to_the_same_bytes(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        whole, cut = Manifest(Path(place), "whole"), Manifest(Path(place), "cut")
        write(whole)
        with pytest.raises(KeyboardInterrupt):
            write(cut, interrupted(ROWS))
        assert cut.is_begun
        assert not cut.exists
        cut.path.write_bytes(cut.path.read_bytes()[: data.draw(st.integers(0, cut.path.stat().st_size))])
        there = cut.path.read_bytes().count(b"\n")
        assert write(cut) == {row["photo"] for row in ROWS[:there]}
        assert cut.path.read_bytes() == whole.path.read_bytes()
        assert cut.summary() == whole.summary()


def test_rows_made_from_something_else_are_made_again(tmp_path: Path) -> None:
    manifest = Manifest(tmp_path, "m")
    with pytest.raises(KeyboardInterrupt):
        write(manifest, interrupted(ROWS[:1]))
    assert write(manifest, [], made_from="y") == set()
    assert list(manifest.rows()) == []
    write(manifest)
    assert write(manifest) == set()  # a finished step that is done again begins again


def test_a_full_disk_is_an_error_and_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = Manifest(tmp_path, "m")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fills_the_disk() -> Iterator[Row]:
        yield ROWS[0]
        patched.setattr(os, "fsync", full)
        yield ROWS[1]

    with monkeypatch.context() as patched, pytest.raises(StorageError, match="No space"):
        write(manifest, fills_the_disk())
    assert not manifest.exists
    assert "0.jpg" in write(manifest)


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [*lines[:2], b"{", *lines[3:]],
        lambda lines: lines[:-1],
        lambda lines: [*lines, lines[0]],
    ],
)
def test_damage_is_named_with_the_file(tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]]) -> None:
    manifest = Manifest(tmp_path, "m")
    write(manifest)
    manifest.path.write_bytes(b"\n".join(damage(manifest.path.read_bytes().splitlines())) + b"\n")
    with pytest.raises(StorageError, match="jsonl"):
        list(manifest.rows())
    manifest.path.unlink()  # as the message says
    assert not manifest.exists
    assert write(manifest) == set()


@pytest.mark.parametrize(("head", "error"), [(b"{", StorageError), (b'{"setnet collect": 9}', VersionError)])
def test_a_head_that_cannot_be_read_is_named(tmp_path: Path, head: bytes, error: type[Exception]) -> None:
    manifest = Manifest(tmp_path, "m")
    write(manifest)
    (tmp_path / "m.json").write_bytes(head)
    with pytest.raises(error, match=r"m\.json"):
        manifest.summary()
