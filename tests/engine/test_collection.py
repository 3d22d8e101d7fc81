"""A collection: manifests of immutable segments that many processes write and read."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import tracemalloc
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import Collection
from setnet.engine.manifest import living_rows
from setnet.errors import InvalidInputError, NotAnIndexError, StorageError

DIM = 16


def filled(world: Any, address: str | Path, batch: int, **options: Any) -> Collection:
    collection = Collection.create(address, dim=world.dim, **options)
    names = list(world.items)
    for at in range(0, len(names), batch):
        collection.add(names[at : at + batch], *world.stack(names[at : at + batch]))
    return collection


@pytest.fixture(params=["folder", "memory"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder, and an address of fsspec's file system in memory, with a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return str(tmp_path / "made") if request.param == "folder" else f"memory://{tmp_path.name}"


def test_a_collection_answers_as_an_index_of_the_same_items(
    address: str, tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(3, 900)
    collection = filled(world, address, 300)
    gone = [f"item {i}" for i in range(0, 900, 7)]
    collection.delete(gone)
    query = world.items["item 5"]
    with make_index(world, tmp_path / "index", 300) as index, SetIndex.open(address) as opened:
        index.delete(gone)
        for mode in ("exact", "set", "fast"):
            assert opened.search(query, 50, mode) == index.search(query, 50, mode)
        assert (len(opened), opened.stats().deleted) == (len(index), len(gone))
        assert "item 5" in opened
        assert "item 7" not in opened
        np.testing.assert_array_equal(opened.elements("item 5"), query)
        assert opened.rerank(query, ["item 9", "item 5"]) == index.rerank(query, ["item 9", "item 5"])
        collection.compact()
        collection.add(["new"], query, [len(query)])
        opened._reader._asked = 0.0  # type: ignore[attr-defined] # of an address, nobody asks for two seconds
        assert {hit.id for hit in opened.search(query, 2)} == {"item 5", "new"}
        assert (opened.stats().segments, opened.stats().deleted, opened.check().problems) == (2, 0, [])
        with pytest.raises(InvalidInputError, match="Collection"):
            opened.add(["x"], query, [len(query)])


def test_an_open_collection_holds_little_beside_its_mapped_files(tmp_path: Path) -> None:
    collection = Collection.create(tmp_path / "made", dim=2, bytes_per_item=16)
    for batch in range(2):
        ids = [f"{batch} {i}" for i in range(30_000)]
        collection.add(ids, np.tile(np.eye(2), (15_000, 1)), np.ones(30_000, int), part=(batch + 1, 2))
    with SetIndex.open(tmp_path / "made") as index:
        index.search(np.eye(2)[:1], 1)
    tracemalloc.start()
    try:
        with SetIndex.open(tmp_path / "made") as index:
            index.search(np.eye(2)[:1], 1)
            assert tracemalloc.get_traced_memory()[0] < 12 * 60_000  # one number of each item, not two
    finally:
        tracemalloc.stop()


def test_a_later_item_replaces_one_of_its_id_also_across_numbers_of_parts(tmp_path: Path) -> None:
    collection = Collection.create(tmp_path / "made", dim=3)
    collection.add(["a", "b"], np.eye(3)[:2], [1, 1], part=(1, 2))
    collection.add(["c"], np.eye(3)[2:], [1], part=(2, 2))
    collection.add(
        ["a"], np.eye(3)[2:], [1], part=(3, 4)
    )  # of four parts, the first and third are of one half
    with SetIndex.open(tmp_path / "made") as index:
        assert sorted(item.id for item in index) == ["a", "b", "c"]
        assert index.search(np.eye(3)[:1], at_least=1).ids == []
        with pytest.raises(InvalidInputError, match="'d'"):
            collection.delete(["a", "d"])
        assert len(index) == 3


def test_a_collection_on_a_web_server_is_read_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Collection.create(tmp_path / "made", dim=3).add(["a", "b"], np.eye(3)[:2], [1, 1])

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}/made"
            with SetIndex.open(address) as index:
                assert index.search(np.eye(3)[1:]).ids[0] == "b"
            with pytest.raises(StorageError, match=address):
                Collection(address).add(["c"], np.eye(3)[:1], [1])
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("is_merged", [False, True])
def test_tables_follow_the_rows_of_segments(address: str, is_merged: bool) -> None:
    arrow = pytest.importorskip("pyarrow")
    collection = Collection.create(address, dim=3)
    for n, ids in enumerate((["a", "b"], ["c"], ["d", "a"])):
        rows = [{"id": name, "batch": n} for name in ids]
        faces = [{"face": f"{name}{n}.{i}"} for name in ids for i in range(2)]
        tables = [arrow.Table.from_pylist(rows), arrow.Table.from_pylist(faces)]
        collection.add(ids, np.eye(3)[[0, 1] * len(ids)], [2] * len(ids), tables=tables)
    collection.add(["e"], np.eye(3)[:1], [1])  # without tables: such segments are merged apart
    collection.delete(["c"])
    if is_merged:
        collection.compact()
    found: dict[str, list[str]] = {}
    for listed in collection.manifest.segments[:-1]:
        items, faces = (collection.table(listed, kind).to_pylist() for kind in ("items", "elements"))
        for row in living_rows(listed).tolist():
            found[items[row]["id"]] = [face["face"] for face in faces[2 * row : 2 * row + 2]]
    assert found == {"b": ["b0.0", "b0.1"], "d": ["d2.0", "d2.1"], "a": ["a2.0", "a2.1"]}
    assert len(collection.manifest.segments) == (2 if is_merged else 4)


def _add_many(address: str, who: int, barrier: Any) -> None:
    collection = Collection(address)
    barrier.wait()
    for i in range(8):
        collection.add([f"{who} {i}"], np.eye(3)[:1], [1])


def test_writers_of_several_processes_lose_nothing(tmp_path: Path) -> None:
    address = str(tmp_path / "made")
    Collection.create(address, dim=3)
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(3)
    writers = [spawn.Process(target=_add_many, args=(address, who, barrier)) for who in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with SetIndex.open(address) as index:
        assert sorted(item.id for item in index) == [f"{who} {i}" for who in range(3) for i in range(8)]
        assert len(index.search(np.eye(3)[:1], 100)) == 24


def test_a_change_during_a_merge_is_carried_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection, other = Collection.create(tmp_path / "made", dim=3), Collection(tmp_path / "made")
    for name in "abc":
        collection.add([name], np.eye(3)[:1], [1])
    write = collection._write

    def write_late(*given: Any) -> Any:
        written = write(*given)
        other.delete(["b"])
        other.add(["d"], np.eye(3)[:1], [1])
        return written

    monkeypatch.setattr(collection, "_write", write_late)
    collection.compact()
    with SetIndex.open(tmp_path / "made") as index:
        assert index.search(np.eye(3)[:1]).ids == ["a", "c", "d"]
        assert (index.stats().segments, index.stats().deleted) == (2, 1)


def test_what_is_deleted_for_good_is_in_no_file(tmp_path: Path) -> None:
    collection = Collection.create(tmp_path / "made", dim=3)
    collection.add(["stays", "secret-name"], np.eye(3)[:2], [1, 1])
    collection.delete(["secret-name"])
    collection.compact(keep=0)
    files = [path for path in (tmp_path / "made").rglob("*") if path.is_file()]
    assert [path.suffix for path in sorted(files)] == [".json", ".seg"]
    assert not any(b"secret-name" in path.read_bytes() for path in files)


def test_what_a_dead_writer_left_is_removed_after_a_day(tmp_path: Path) -> None:
    collection = Collection.create(tmp_path / "made", dim=3)
    collection.add(["a"], np.eye(3)[:1], [1])
    (known,) = (tmp_path / "made" / "segments").iterdir()
    left, new = known.with_name(f"{'1' * 32}.seg"), known.with_name(f"{'2' * 32}.seg")
    for path in (left, new):
        path.write_bytes(known.read_bytes())
    for path in (known, left):
        os.utime(path, (1, 1))
    collection.compact()
    assert {*known.parent.iterdir()} == {known, new}


def test_another_model_and_a_damaged_manifest_are_errors(tmp_path: Path) -> None:
    Collection.create(tmp_path / "made", dim=3, about={"model": "one"})
    assert Collection.create(tmp_path / "made", dim=3, about={"model": "one"}).manifest.number == 1
    with pytest.raises(InvalidInputError, match="do not compare"):
        Collection.create(tmp_path / "made", dim=3, about={"model": "two"})
    with pytest.raises(NotAnIndexError, match=r"Collection\.create"):
        Collection(tmp_path / "none")
    place = tmp_path / "made" / "manifests" / "00000001.json"
    stored = json.loads(place.read_text())
    stored["manifest"]["next_seq"] = 7
    place.write_text(json.dumps(stored))
    with pytest.raises(StorageError, match="checksum"):
        SetIndex.open(tmp_path / "made")
