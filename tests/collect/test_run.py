from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.collect import CollectRun, run_status, run_step
from setnet.collect.run import Manifest, ManifestWriter
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError, StorageError, VersionError
from tests.support.invented_collect import invented_run


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
        ({"names_needed": 3}, "names_needed"),
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


ROWS = [{"photo": f"{n}.jpg", "kept": n % 2 == 0, "reason": "odd"} for n in range(7)]


def write(path: Path, rows: list[dict[str, object]], made_from: object = "x") -> None:
    with ManifestWriter(path, {"from": made_from}, "photo") as writer:
        for row in rows:
            writer.add(row)
        writer.finish()


def test_rows_come_back_in_order_with_their_counts(tmp_path: Path) -> None:
    write(tmp_path / "m.jsonl", ROWS)
    manifest = Manifest(tmp_path / "m.jsonl")
    assert list(manifest.rows()) == ROWS
    summary = manifest.summary()
    assert (summary.rows, summary.kept, dict(summary.reasons)) == (7, 4, {"odd": 3})
    assert manifest.provenance() == {"from": "x"}


@given(st.data())
def test_a_manifest_cut_anywhere_is_continued_to_the_same_bytes(data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        whole, cut = Path(place) / "whole.jsonl", Path(place) / "cut.jsonl"
        write(whole, ROWS)
        everything = whole.read_bytes()
        end = data.draw(st.integers(0, everything.index(b'{"end"')))
        (Path(place) / "cut.jsonl.part").write_bytes(everything[:end])
        with ManifestWriter(cut, {"from": "x"}, "photo") as writer:
            for row in ROWS:
                if row["photo"] not in writer.done:
                    writer.add(row)
            writer.finish()
        assert cut.read_bytes() == everything


def test_a_part_made_from_something_else_is_begun_anew(tmp_path: Path) -> None:
    with ManifestWriter(tmp_path / "m.jsonl", {"from": "x"}, "photo") as writer:
        writer.add(ROWS[0])
    with ManifestWriter(tmp_path / "m.jsonl", {"from": "y"}, "photo") as writer:
        assert writer.done == set()
        writer.finish()
    assert list(Manifest(tmp_path / "m.jsonl").rows()) == []


def test_a_full_disk_is_an_error_and_keeps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = ManifestWriter(tmp_path / "m.jsonl", {"from": "x"}, "photo")
    writer.add(ROWS[0])
    writer._flush()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        writer.add(ROWS[1])
        with pytest.raises(StorageError, match="No space"):
            writer.finish()
    assert not (tmp_path / "m.jsonl").exists()
    with ManifestWriter(tmp_path / "m.jsonl", {"from": "x"}, "photo") as again:
        assert "0.jpg" in again.done


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda lines: [*lines[:2], b"{", *lines[3:]], StorageError),
        (lambda lines: lines[:-1], StorageError),
        (lambda lines: [b"[]", *lines[1:]], StorageError),
        (lambda lines: [lines[0].replace(b'collect": 1', b'collect": 9'), *lines[1:]], VersionError),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, damage: object, error: type[Exception]) -> None:
    assert callable(damage)
    path = tmp_path / "m.jsonl"
    write(path, ROWS)
    path.write_bytes(b"\n".join(damage(path.read_bytes().splitlines())) + b"\n")
    with pytest.raises(error, match="jsonl"):
        list(Manifest(path).rows())
