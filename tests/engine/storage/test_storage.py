"""What is stored survives: reopening, deleting, merging, killing, full disks and damaged files."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import writer
from setnet.engine.catalog import Catalog
from setnet.engine.commit_log import CommitLog
from setnet.errors import SetNetError, StorageError, VersionError


def test_reopening_changes_nothing(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(1, 700)
    query = np.random.default_rng(0).normal(size=(2, 16)).astype(np.float32)
    with make_index(world, tmp_path / "i") as index:
        before = index.search(query, k=30)
    with SetIndex.open(tmp_path / "i") as index:
        assert index.search(query, k=30) == before
        assert index.check().ok
        assert len(index) == 700
        assert [item.id for item in index] == list(world.items)
        np.testing.assert_array_equal(index.elements("item 5"), world.items["item 5"])


def test_upsert_replaces_an_item_whole(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(2, 400)
    rng = np.random.default_rng(1)
    query = rng.normal(size=(2, 16)).astype(np.float32)
    with make_index(world, tmp_path / "i") as index:
        for name in ("item 3", "item 77", "new"):
            world.items[name] = rng.normal(size=(4, 16)).astype(np.float32)
        index.add(["item 3", "new", "item 77"], *world.stack(["item 3", "new", "item 77"]))
        world.agrees(index.search(query, k=50), query, 50)
        assert len(index) == 401
        stats = index.stats()
        assert (stats.items, stats.elements) == (401, sum(map(len, world.items.values())))
        assert index.check().ok


def test_any_history_of_changes_ends_in_the_same_answers(
    tmp_path: Path, empty_world: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MERGE", 3)
    rng = np.random.default_rng(3)
    world = empty_world(8)
    query = rng.normal(size=(2, 8)).astype(np.float32)
    with SetIndex.create(tmp_path / "i", 8) as index:
        for step in range(40):
            if step % 4 == 3 and world.items:
                gone = list(rng.choice(list(world.items), min(5, len(world.items)), replace=False))
                index.delete(gone)
                for name in gone:
                    del world.items[name]
            else:
                names = [f"n{i}" for i in rng.choice(120, 20, replace=False)]
                for name in names:
                    world.items[name] = rng.normal(size=(rng.integers(0, 4), 8)).astype(np.float32)
                index.add(names, *world.stack(names))
            if step == 25:
                index.compact()
            world.agrees(index.search(query, k=200), query, 200)
        assert index.check().ok
        assert index.stats().segments < 12, "small segments are merged as they pile up"
        index.compact()
        world.agrees(index.search(query, k=200), query, 200)
        assert index.stats().segments == 1
        assert index.stats().deleted == 0


def test_compaction_takes_deleted_vectors_and_names_off_the_disk(tmp_path: Path) -> None:
    secret = np.array([[0.123456, 0.654321, 0.111213, 0.141516]], np.float32)
    with SetIndex.create(tmp_path / "i", 4) as index:
        index.add(["keep", "secret-name"], np.concatenate([np.ones((1, 4), np.float32), secret]), [1, 1],
                  attributes=[None, {"where": "secret-place"}])  # fmt: skip
        index.delete(["secret-name"])
        index.compact()
    found = b"".join(path.read_bytes() for path in (tmp_path / "i").rglob("*") if path.is_file())
    assert b"keep" in found
    for trace in (b"secret-name", b"secret-place", secret.tobytes()):
        assert trace not in found


# -- a writer that is killed ---------------------------------------------------------------------------

WRITER = """
import sys, numpy as np
from setnet import SetIndex
from setnet.engine import writer
writer.MERGE = 3
index = SetIndex.open(sys.argv[1])
start = len(index)
for i in range(start, start + 100000):
    rng = np.random.default_rng(i)
    n = int(rng.integers(1, 5))
    index.add([f"{i}-{j}" for j in range(3)], rng.normal(size=(3 * n, 8)).astype(np.float32), [n] * 3)
    print(i, flush=True)
    if i % 7 == 6:
        index.delete([f"{i - 3}-0"])
        print(-(i - 3), flush=True)
"""


def acknowledged_state(lines: list[str]) -> dict[str, int]:
    alive = {}
    for line in lines:
        i = int(line)
        if i > 0 or line.strip() == "0":
            n = int(np.random.default_rng(i).integers(1, 5))
            alive.update({f"{i}-{j}": n for j in range(3)})
        else:
            alive.pop(f"{-i}-0")
    return alive


def kill_and_compare(path: Path, moments: int) -> None:
    """Kill a writer at random moments; all it acknowledged must be there, and at most one change more."""
    rng = np.random.default_rng(5)
    SetIndex.create(path, 8).close()
    lines = []
    for _ in range(moments):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        lines.append(process.stdout.readline())
        time.sleep(rng.uniform(0, 0.03))
        os.kill(process.pid, signal.SIGKILL)
        lines += [line for line in process.stdout.read().splitlines() if line]
        process.wait()
        expected = acknowledged_state(lines)
        with SetIndex.open(path) as index:
            stored = {item.id: item.elements for item in index}
            report = index.check()
            assert report.ok, report.problems
        extra = set(stored) - set(expected)
        assert {name: stored.get(name) for name in expected if name in stored} == {
            name: n for name, n in expected.items() if name in stored
        }
        missing = set(expected) - set(stored)
        # the change under way when the kill came is either whole or not there at all
        assert len(missing) <= 1
        assert len({name.split("-")[0] for name in extra}) <= 1
        assert len(extra) in (0, 3)
        with SetIndex.open(path) as index:  # start the next round from what was acknowledged
            if extra:
                index.delete(sorted(extra))
            if missing:
                name = missing.pop()
                i, n = int(name.split("-")[0]), expected[name]
                rows = np.random.default_rng(i)
                rows.integers(1, 5)
                index.add([name], rows.normal(size=(3 * n, 8)).astype(np.float32)[:n], [n])


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    kill_and_compare(tmp_path / "i", moments=6)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_writer_killed_a_hundred_times(tmp_path: Path) -> None:
    kill_and_compare(tmp_path / "i", moments=100)


# -- a disk that is full -------------------------------------------------------------------------------


FULL_DISK = """
import resource, signal, sys, numpy as np
from setnet import SetIndex
from setnet.errors import StorageError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
index = SetIndex.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    index.add([f"x{i}" for i in range(500)], np.ones((500, 8), np.float32), [1] * 500)
except StorageError as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [100, 4000, 20_000])
def test_a_full_disk_is_a_clear_error_and_changes_nothing(tmp_path: Path, limit: int) -> None:
    with SetIndex.create(tmp_path / "i", 8) as index:
        index.add(["a", "b"], np.eye(8)[:2], [1, 1])
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "i"), str(limit)]
    message = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert "cannot write" in message
    with SetIndex.open(tmp_path / "i") as index:
        assert [item.id for item in index] == ["a", "b"]
        assert index.check().ok
        assert len(list((tmp_path / "i" / "segments").iterdir())) == 1
        index.add(["c"], np.eye(8)[2:3], [1])
        assert len(index) == 3


# -- damage --------------------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]) -> Path:
    world = make_world(4, 300)
    with make_index(world, tmp_path / "i", batch=300) as index:
        index.add(["with"], np.ones((1, 16), np.float32), [1], attributes=[{"colour": "red"}])
    return tmp_path / "i"


def damage_report(path: Path) -> str:
    """What opening or checking says of a damaged index; empty when nothing is noticed."""
    try:
        with SetIndex.open(path, read_only=True) as index:
            report = index.check()
            assert report.ok == (not report.problems)
            return " ".join(report.problems)
    except SetNetError as error:
        return str(error)


def files_of(path: Path) -> list[Path]:
    return [p for p in sorted(path.rglob("*")) if p.is_file() and p.stat().st_size]


def contents_of(path: Path) -> object:
    """Everything that a caller can see of an index."""
    with SetIndex.open(path, read_only=True) as index:
        items = [(item, index.elements(item.id).tobytes()) for item in index]
        hits = index.search(np.ones((1, 16)), k=1000, where={"colour": "red"})
        return items, hits, len(index), index.stats().elements, [item.id in index for item, _ in items]


def test_a_flipped_byte_is_found_or_harmless_wherever_it_is(stored: Path) -> None:
    assert damage_report(stored) == ""
    before = contents_of(stored)
    rng = np.random.default_rng(0)
    kinds = files_of(stored)
    assert {p.suffix for p in kinds} == {".log", ".seg", ".sqlite"}
    for path in kinds:
        whole = path.read_bytes()
        for at in {0, len(whole) - 1, len(whole) // 2, *rng.integers(0, len(whole), 40).tolist()}:
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
            report = damage_report(stored)
            if not report:
                assert path.suffix != ".seg", at
                assert contents_of(stored) == before, (path.name, at)
            else:
                assert path.name in report or "catalog.sqlite" in report, (path.name, at, report)
            for extra in ("catalog.sqlite-wal", "catalog.sqlite-shm"):
                (stored / extra).unlink(missing_ok=True)
        path.write_bytes(whole)
    assert damage_report(stored) == ""


def test_a_truncated_file_is_found_or_written_again(stored: Path) -> None:
    for path in files_of(stored):
        whole = path.read_bytes()
        for size in (0, 10, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            if path.suffix == ".log":  # the catalogue says the same: the next writer makes it whole
                SetIndex.open(stored).close()
                assert CommitLog(stored).read() == Catalog(stored / "catalog.sqlite", True).committed()
            else:
                assert damage_report(stored) != "", (path.name, size)
        path.write_bytes(whole)
    assert damage_report(stored) == ""


def test_a_missing_segment_is_named(stored: Path) -> None:
    path = next(iter(sorted((stored / "segments").iterdir())))
    path.rename(stored / "elsewhere")
    with SetIndex.open(stored, read_only=True) as index:
        assert path.name in " ".join(index.check().problems)
        with pytest.raises(StorageError, match=path.name):
            index.search(np.ones((1, 16)))


def test_catalogue_and_segments_are_compared(stored: Path) -> None:
    db = sqlite3.connect(stored / "catalog.sqlite")
    db.execute("UPDATE items SET id = 'other' WHERE id = 'item 7'")
    db.commit()
    assert "'item 7'" in damage_report(stored)
    db.execute("DELETE FROM items WHERE id = 'other'")
    db.commit()
    db.close()
    assert damage_report(stored) != ""


def test_a_newer_format_is_refused_with_the_remedy(stored: Path) -> None:
    db = sqlite3.connect(stored / "catalog.sqlite")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(VersionError, match="upgrade setnet"):
        SetIndex.open(stored)


@pytest.mark.parametrize("make", ["nothing", "file", "folder", "other database"])
def test_what_is_no_index_is_refused(tmp_path: Path, make: str) -> None:
    path = tmp_path / "x"
    if make == "file":
        path.write_text("hello")
    elif make == "folder":
        path.mkdir()
    elif make == "other database":
        path.mkdir()
        sqlite3.connect(path / "catalog.sqlite").execute("CREATE TABLE t (x)").connection.commit()
    with pytest.raises(SetNetError, match=str(path)):
        SetIndex.open(path)


def test_leftovers_of_a_killed_writer_are_put_aside(stored: Path) -> None:
    stray = stored / "segments" / "00000099.seg"
    stray.write_bytes(b"half a segment")
    SetIndex.open(stored, read_only=True).close()
    assert stray.exists(), "a reader touches nothing"
    SetIndex.open(stored).close()
    assert not stray.exists()


def test_compact_deletes_what_was_put_aside_after_the_clock_went_back(stored: Path) -> None:
    stray = stored / "quarantine" / "00000099.seg"
    stray.parent.mkdir()
    stray.write_bytes(b"half a segment")
    tomorrow = time.time() + 86400
    os.utime(stray, (tomorrow, tomorrow))
    with SetIndex.open(stored) as index:
        index.compact()
    assert not stray.exists()


def test_a_read_only_folder_can_be_searched(stored: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    stored.chmod(0o500)
    try:
        with SetIndex.open(stored, read_only=True) as index:
            assert index.search(np.ones((1, 16)), k=3)
    finally:
        stored.chmod(0o700)


def test_open_reads_no_vectors(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    make_index(make_world(9, 3000, dim=64), tmp_path / "i", batch=3000).close()
    assert sum(path.stat().st_size for path in (tmp_path / "i" / "segments").iterdir()) > 2_000_000
    before = Path("/proc/self/io").read_text() if Path("/proc/self/io").exists() else ""
    if not before:
        pytest.skip("no /proc/self/io here")
    with SetIndex.open(tmp_path / "i", read_only=True):
        after = Path("/proc/self/io").read_text()
    read = [int(text.split()[1]) for text in (before, after)]
    assert read[1] - read[0] < 200_000


def test_a_refused_index_is_closed_at_once(tmp_path: Path) -> None:
    """An open connection keeps SQLite's log and shared memory on the disk, also a full one."""
    SetIndex.create(tmp_path / "i", 3).close()
    catalog = tmp_path / "i" / "catalog.sqlite"
    with sqlite3.connect(catalog) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(VersionError) as refused:
        SetIndex.open(tmp_path / "i")
    assert refused.traceback, "which would keep a connection alive that nobody closed"
    assert not catalog.with_name("catalog.sqlite-shm").exists()
