"""What happens when shards are silent, late or wrong: an exact answer, or an error that names them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.cluster import ClusterIndex
from setnet.cluster.engine.in_process import InProcessEngine
from setnet.errors import (
    ClusterError,
    FencedError,
    InvalidInputError,
    MissingShardsError,
    NotAnIndexError,
    StorageError,
    VersionError,
)
from setnet.index import Hit
from setnet.workers import Message

ROWS = np.linalg.qr(np.random.default_rng(5).normal(size=(8, 8)))[0].astype(np.float32)
QUERY = ROWS[:2] + 0.4 * ROWS[2:4] + 0.2 * ROWS[4:6]
IDS = [f"item {i}" for i in range(8)]


class FaultyEngine:
    """Two copies of every shard in this process, each of which can be made to fail or to stand still."""

    def __init__(self, root: Path) -> None:
        self._engines = [InProcessEngine(root), InProcessEngine(root)]
        self.silent: set[tuple[int, int]] = set()  # (shard, copy)
        self.dead: set[tuple[int, int]] = set()
        self.asked: list[tuple[int, int]] = []
        self.before: Callable[[Message], None] = lambda call: None

    def ask(self, shard: int, call: Message, deadline: float, copy: int = 0) -> Future[Message]:
        self.asked.append((shard, copy))
        self.before(call)
        future: Future[Message] = Future()
        if (shard, copy) in self.dead:
            future.set_exception(ClusterError("the worker is gone"))
        elif (shard, copy) not in self.silent:
            return self._engines[copy].ask(shard, call, deadline)
        return future

    def copies(self, shard: int) -> int:
        return 2

    def close(self) -> None:
        for engine in self._engines:
            engine.close()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[FaultyEngine]:
    with ClusterIndex.create(tmp_path / "c", shards=3, dim=8) as index:
        index.add(IDS, ROWS, [1] * 8)
        index.publish()
    made = FaultyEngine(tmp_path / "c")
    yield made
    made.close()


@pytest.fixture
def index(engine: FaultyEngine, tmp_path: Path) -> ClusterIndex:
    return ClusterIndex.open(tmp_path / "c", engine, deadline=0.4)


def ids_of(hits: list[Hit]) -> set[str]:
    return {hit.id for hit in hits}


def test_a_second_copy_is_asked_when_the_first_is_late_or_dead(
    index: ClusterIndex, engine: FaultyEngine
) -> None:
    engine.silent = {(0, 0)}
    engine.dead = {(1, 0)}
    assert ids_of(index.search(ROWS, k=8)) == set(IDS)
    assert (0, 1) in engine.asked
    assert (1, 1) in engine.asked
    assert (2, 1) not in engine.asked


def test_missing_shards_are_an_error_that_names_them(index: ClusterIndex, engine: FaultyEngine) -> None:
    engine.silent = {(1, 0), (1, 1)}
    engine.dead = {(2, 0), (2, 1)}
    with pytest.raises(MissingShardsError, match=r"shards 1, 2 .* 0\.4 s") as raised:
        index.search(ROWS, k=8)
    assert raised.value.shards == (1, 2)


@pytest.mark.parametrize("mode", ["exact", "fast", "set"])
def test_a_partial_answer_says_what_is_missing(index: ClusterIndex, engine: FaultyEngine, mode: str) -> None:
    engine.dead = {(1, 0), (1, 1)}
    found = index.search(ROWS, k=8, mode=mode, partial=True)
    assert found.missing == (1,)
    engine.dead.clear()
    whole = index.search(ROWS, k=8, mode=mode)
    assert whole.missing == ()
    assert ids_of(found) < ids_of(whole) == set(IDS)


def test_bad_input_is_not_asked_of_a_second_copy(index: ClusterIndex, engine: FaultyEngine) -> None:
    with pytest.raises(InvalidInputError, match="unknown attribute 'year'"):
        index.search(ROWS, where={"year": 2019})
    assert all(copy == 0 for _, copy in engine.asked)
    with pytest.raises(InvalidInputError, match="expected"):
        index.search(np.ones((1, 3)))


def test_an_attribute_that_only_some_shards_have_is_a_condition(index: ClusterIndex) -> None:
    index.add(["dated"], ROWS[:1], [1], attributes=[{"year": 2019}])
    index.publish()
    for mode in ("exact", "fast"):
        assert ids_of(index.search(ROWS, where={"year": 2019}, mode=mode)) == {"dated"}


def test_a_change_goes_to_another_process_and_the_first_writer_is_fenced(
    index: ClusterIndex, engine: FaultyEngine, tmp_path: Path
) -> None:
    index.add(["a"], ROWS[:1], [1])
    engine.dead = {(shard, 0) for shard in range(3)}
    index.add(["b", "c", "d", "e"], ROWS[:4], [1] * 4)  # the second copy takes all shards over
    engine.dead = {(shard, 1) for shard in range(3)}
    index.add(["a", "b", "f"], ROWS[:3], [1] * 3)  # and the first takes them back, with what they hold
    assert index.publish() == 14
    assert ids_of(index.search(ROWS, k=20)) == {*IDS, *"abcdef"}


def test_a_writer_that_was_replaced_in_the_middle_does_not_acknowledge(tmp_path: Path) -> None:
    from setnet.cluster.storage.shard_writer import ShardWriter, fix_code_centre

    ClusterIndex.create(tmp_path / "c", shards=1, dim=8).close()
    fix_code_centre(tmp_path / "c", [0.0] * 8)
    first = ShardWriter(tmp_path / "c", 1, 0)
    first.add(["a"], ROWS[:1], [1])
    second = ShardWriter(tmp_path / "c", 1, 0)
    with pytest.raises(FencedError, match=r"replaced by writer 2.*repeated"):
        first.add(["b"], ROWS[:1], [1])
    with pytest.raises(FencedError):
        first.publish()
    assert second.missing(["a", "b"]) == ["b"]
    first.close()
    second.close()


def test_repeated_changes_do_no_harm(index: ClusterIndex) -> None:
    for _ in range(2):
        index.add(IDS[:2], ROWS[:2], [1, 1])
        index.delete([IDS[3]], missing_ok=True)
    with pytest.raises(InvalidInputError, match="'item 3' is not in the index: nothing was deleted"):
        index.delete([IDS[2], IDS[3]])
    assert index.publish() == 7


def test_searches_see_one_published_state(index: ClusterIndex, tmp_path: Path) -> None:
    index.add(["new"], ROWS[:1], [1])
    assert "new" not in ids_of(index.search(ROWS, k=20))
    index.publish()
    assert "new" in ids_of(index.search(ROWS, k=20))
    left = [path.name for path in (tmp_path / "c").glob("epoch-*/shard-*/versions/*/catalog.sqlite*")]
    assert set(left) == {"catalog.sqlite"}  # no shared memory, which machines do not share


def test_deleted_items_leave_the_disk(index: ClusterIndex, tmp_path: Path) -> None:
    index.delete(IDS[:4])
    index.compact()
    names = b"".join(path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file())
    assert IDS[0].encode() not in names
    assert IDS[5].encode() in names


def test_searches_go_on_while_a_cluster_grows(index: ClusterIndex, tmp_path: Path) -> None:
    before = list(index.search(QUERY, k=4))
    wrong: list[object] = []
    done = threading.Event()

    def keep_searching() -> None:
        while not done.is_set():
            found = list(index.search(QUERY, k=4))
            if found != before:
                wrong.append(found)

    thread = threading.Thread(target=keep_searching)
    thread.start()
    try:
        index.grow(6)
    finally:
        done.set()
        thread.join()
    assert not wrong
    assert list(index.search(QUERY, k=4)) == before
    assert len(list((tmp_path / "c").glob("epoch-0002/shard-*"))) == 6
    assert (tmp_path / "c" / "epoch-0002").stat().st_mode & 0o77 == 0
    index.add(["more"], ROWS[:1], [1])
    index.publish()
    assert len(index) == 9
    assert index.check().ok
    with pytest.raises(InvalidInputError, match="6 shards and can grow to a larger number"):
        index.grow(5)


def test_a_change_of_an_epoch_that_ended_is_refused(index: ClusterIndex, engine: FaultyEngine) -> None:
    def grow_first(call: Message) -> None:
        engine.before = lambda call: None
        ClusterIndex.open(index.path).grow(6)

    engine.before = grow_first
    with pytest.raises(MissingShardsError, match="epoch 2"):
        index.add(["late"], ROWS[:1], [1])
    index.add(["late"], ROWS[:1], [1])
    assert index.publish() == 9


def test_no_change_is_acknowledged_while_a_cluster_grows(
    index: ClusterIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    from setnet.cluster.storage import growth

    def add_in_between(*given: Any) -> Any:
        with pytest.raises(MissingShardsError, match="is growing: repeat the change"):
            index.add(["late"], ROWS[:1], [1])
        if given[2] == 4:
            raise KeyboardInterrupt
        return part(*given)

    part = growth._part
    with monkeypatch.context() as patch:
        patch.setattr(growth, "_part", add_in_between)
        with pytest.raises(KeyboardInterrupt):
            index.grow(6)
    assert len(index.search(ROWS, k=20)) == 8
    with pytest.raises(MissingShardsError, match="setnet cluster grow"):
        index.add(["late"], ROWS[:1], [1])
    index.grow(6)
    index.add(["late"], ROWS[:1], [1])
    assert index.publish() == 9
    assert index.check().ok


def test_a_killed_publish_is_harmless(index: ClusterIndex, tmp_path: Path) -> None:
    shard = next((tmp_path / "c").glob("epoch-0001/shard-0000/versions"))
    (shard / ".000001-000009").mkdir()
    (shard / ".000001-000009" / "catalog.sqlite.new").write_bytes(b"half")
    index.add(["new"], ROWS[:1], [1])
    index.publish()
    assert len(index) == 9
    assert index.check().ok


def test_a_damaged_or_missing_shard_is_named(index: ClusterIndex, tmp_path: Path) -> None:
    import shutil

    for path in (tmp_path / "c").glob("epoch-0001/shard-0002/versions/*"):
        shutil.rmtree(path)
    with pytest.raises(MissingShardsError, match=r"shards 2 .*shard-0002.* is gone .*setnet repair"):
        index.search(ROWS)


def test_a_check_finds_what_an_open_shard_has_lost(index: ClusterIndex, tmp_path: Path) -> None:
    assert len(index.search(ROWS, k=8)) == 8  # from now on all shards are open
    (tmp_path / "c" / "epoch-0001" / "shard-0002" / "versions").rename(tmp_path / "away")
    (problem,) = index.check().problems
    assert "shard 2: " in problem


def test_folders_that_are_no_cluster_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAnIndexError, match="setnet cluster create"):
        ClusterIndex.open(tmp_path)
    ClusterIndex.create(tmp_path / "c", shards=1, dim=2).close()
    with pytest.raises(InvalidInputError, match="holds a cluster already"):
        ClusterIndex.create(tmp_path / "c", shards=1, dim=2)
    (tmp_path / "c" / "cluster.json").write_text('{"format": 99}')
    with pytest.raises(VersionError, match="upgrade setnet"):
        ClusterIndex.open(tmp_path / "c")
    (tmp_path / "c" / "cluster.json").write_text("{")
    with pytest.raises(StorageError, match="damaged"):
        ClusterIndex.open(tmp_path / "c")
    for shards in (0, 2.5, 10**6):
        with pytest.raises(InvalidInputError, match="shards is"):
            ClusterIndex.create(tmp_path / "d", shards=shards, dim=2)  # type: ignore[arg-type]


def test_a_machine_with_another_head_makes_no_shard(tmp_path: Path) -> None:
    ClusterIndex.create(tmp_path / "c", shards=1, dim=128, head="sface-128").close()
    file = tmp_path / "c" / "cluster.json"
    stored = json.loads(file.read_text())
    file.write_text(json.dumps(stored | {"settings": _with_other_head(stored["settings"])}))
    with ClusterIndex.open(tmp_path / "c") as index:
        with pytest.raises(MissingShardsError, match=r"other set vectors .* on all machines"):
            index.add(["one"], np.eye(1, 128), [1])
        file.write_text(json.dumps(stored))
        index.add(["one"], np.eye(1, 128), [1])
        assert index.publish() == 1


def _with_other_head(settings: dict[str, Any]) -> dict[str, Any]:
    return settings | {"sets": settings["sets"] | {"fingerprint": "00000000"}}


def test_an_empty_cluster_has_no_hits(tmp_path: Path) -> None:
    with ClusterIndex.create(tmp_path / "c", shards=2, dim=8) as index:
        assert index.publish() == 0
        assert index.search(ROWS) == []
        assert len(index) == 0


def test_a_full_disk_on_one_machine_is_named_and_loses_nothing(
    index: ClusterIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from setnet.index import SetIndex

    def full(self: SetIndex, *_: object) -> None:
        raise StorageError(f"{self.path}: {os.strerror(errno.ENOSPC)}")

    with monkeypatch.context() as patch:
        patch.setattr(SetIndex, "add", full)
        with pytest.raises(StorageError, match=r"shard-000\d.*No space left"):
            index.add(["more"], ROWS[:1], [1])
    assert index.publish() == 8
    index.add(["more"], ROWS[:1], [1])
    assert index.publish() == 9
