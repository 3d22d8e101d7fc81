"""What one process of a cluster does for it: answers from published shards, and writes shards."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from setnet.cluster.search import calls
from setnet.cluster.storage.places import EpochFolder, shard_of
from setnet.cluster.storage.shard_repair import repair_shard
from setnet.cluster.storage.shard_writer import ShardWriter
from setnet.errors import FencedError, NotAnIndexError, SetNetError, StorageError, UnknownAttributeError
from setnet.index import RankedItems, SetIndex
from setnet.workers import Message, answer

KEPT_VERSIONS = 3  # of a shard that stay open: those of searches under way, and the newest

Key = tuple[int, int]  # epoch and shard


class Node:
    """Serves any shard of a cluster from shared storage; many threads may call `answer`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._open: dict[Key, OrderedDict[str, SetIndex]] = {}
        self._writers: dict[Key, ShardWriter] = {}
        self._writing: dict[Key, threading.Lock] = {}
        self._tasks: dict[str, Callable[[Message], Message]] = {
            name.removeprefix("_do_"): getattr(self, name) for name in dir(self) if name.startswith("_do_")
        }

    def answer(self, call: Message) -> Message:
        """Return the reply to a call, or its failure as a reply."""
        return answer(self._tasks, call)

    def close(self) -> None:
        """Close all shards."""
        with self._lock:
            for versions in self._open.values():
                for index in versions.values():
                    index.close()
            for writer in self._writers.values():
                writer.close()
            self._open.clear()
            self._writers.clear()

    # -- reading -------------------------------------------------------------------------------------

    def _index(self, call: Message) -> SetIndex:
        """Return the version of a shard that a call names, open."""
        key, name = _key(call), str(call.fields["version"])
        with self._lock:
            versions = self._open.setdefault(key, OrderedDict())
            if name not in versions:
                path = EpochFolder(self._root, key[0]).version(key[1], name)
                versions[name] = _opened(path)
                for old in sorted(versions)[:-KEPT_VERSIONS]:
                    if old != name:
                        versions.pop(old).close()
            return versions[name]

    def _do_search(self, call: Message) -> Message:
        index = self._index(call)
        queries, options = calls.asked(call)
        by_tags = options.mode == "tags"
        try:
            if by_tags:
                return calls.hits_reply(index.answer(queries, options))
            return calls.ranked_reply(index.ranked_many(queries, options))
        except UnknownAttributeError as error:  # other shards may have items with it
            none = [RankedItems.none(1) for _ in queries]
            return _unknown(
                calls.hits_reply([[]] * len(queries)) if by_tags else calls.ranked_reply(none), error
            )

    def _do_candidates(self, call: Message) -> Message:
        index = self._index(call)
        queries, options = calls.asked(call)
        try:
            return calls.candidates_reply([index.candidates(query, options) for query in queries])
        except UnknownAttributeError as error:
            found = [index.candidates(query, replace(options, where=None)) for query in queries]
            empty = np.empty(0, np.int64)
            none = [
                replace(c, items=empty, estimates=c.estimates[:0], sure=empty, open_count=0) for c in found
            ]
            return _unknown(calls.candidates_reply(none), error)

    def _do_rerank(self, call: Message) -> Message:
        index = self._index(call)
        queries, options = calls.asked(call)
        found = zip(queries, calls.items_in(call), strict=True)
        return calls.ranked_reply([index.ranked_among(query, items, options) for query, items in found])

    def _do_contains(self, call: Message) -> Message:
        index = self._index(call)
        return Message("done", {"there": [name in index for name in call.fields["ids"]]})

    def _do_elements(self, call: Message) -> Message:
        return Message("done", {}, {"elements": self._index(call).elements(call.fields["id"])})

    def _do_sample(self, call: Message) -> Message:
        return Message("done", {}, {"elements": self._index(call).sample(call.fields["count"])})

    def _do_contents(self, call: Message) -> Message:
        found = self._index(call).contents()
        return Message("done", {"ids": found.ids}, {"counts": found.counts, "elements": found.elements})

    def _do_items(self, call: Message) -> Message:
        return Message("done", {"items": [item.to_dict() for item in self._index(call).items()]})

    def _do_stats(self, call: Message) -> Message:
        facts = self._index(call).stats().to_dict()
        del facts["bytes"]
        return Message("done", {"stats": facts})

    def _do_check(self, call: Message) -> Message:
        (epoch, shard), shards = _key(call), call.fields["shards"]
        path = EpochFolder(self._root, epoch).version(shard, str(call.fields["version"]))
        try:
            with _opened(path) as index:  # anew: one that is open outlives its files
                problems = index.check().problems
                lost = [item.id for item in index.items() if shard_of(item.id, shards) != shard]
        except SetNetError as error:
            return Message("done", {"problems": [f"shard {shard}: {error}"]})
        problems += [f"{path} holds {name!r}, which belongs to another shard" for name in lost[:3]]
        return Message("done", {"problems": problems})

    # -- writing -------------------------------------------------------------------------------------

    def _alone(self, call: Message) -> threading.Lock:
        """Return the lock of a shard's writing in this process."""
        with self._lock:
            return self._writing.setdefault(_key(call), threading.Lock())

    @contextmanager
    def _writer(self, call: Message) -> Iterator[ShardWriter]:
        """Yield the shard's writer of this process, one thread at a time; it takes over where it must."""
        key = _key(call)
        with self._alone(call):
            writer = self._writers.get(key)
            if writer is None:
                writer = self._writers[key] = ShardWriter(self._root, *key)
            try:
                yield writer
            except FencedError:  # the next call takes over again, with what the other one wrote
                del self._writers[key]
                writer.close()
                raise

    def _do_add(self, call: Message) -> Message:
        fields, arrays = call.fields, call.arrays
        given: Any = arrays.get("set_vectors")
        with self._writer(call) as writer:
            writer.add(fields["ids"], arrays["elements"], arrays["counts"], fields["attributes"], given)
        return Message("done")

    def _do_missing(self, call: Message) -> Message:
        with self._writer(call) as writer:
            return Message("done", {"ids": writer.missing(call.fields["ids"])})

    def _do_written(self, call: Message) -> Message:
        with self._writer(call) as writer:
            return Message("done", {}, {"elements": writer.elements(call.fields["id"])})

    def _do_delete(self, call: Message) -> Message:
        with self._writer(call) as writer:
            writer.delete(call.fields["ids"])
        return Message("done")

    def _do_tag(self, call: Message) -> Message:
        names, sizes = call.fields["names"], call.arrays["sizes"]
        examples = np.split(call.arrays["examples"], np.cumsum(sizes)[:-1])
        with self._writer(call) as writer:
            gallery = dict(zip(names, examples, strict=True))
            return Message("done", {"entries": writer.tag(gallery, call.fields["threshold"])})

    def _do_compact(self, call: Message) -> Message:
        with self._writer(call) as writer:
            writer.compact(call.fields["lists"])
        return Message("done")

    def _do_publish(self, call: Message) -> Message:
        with self._writer(call) as writer:
            version = writer.publish()
        return Message("done", {"name": version.name, "items": version.items})

    def _do_repair(self, call: Message) -> Message:
        key = _key(call)
        with self._alone(call):
            if (writer := self._writers.pop(key, None)) is not None:
                writer.close()
            done = repair_shard(self._root, *key, call.fields["revive"])
        return Message("done", {"repaired": None if done is None else done.to_dict()})


def _opened(version: Path) -> SetIndex:
    try:
        return SetIndex.open(version, read_only=True)
    except NotAnIndexError:
        raise StorageError(
            f"{version} is gone or has lost files: bring it back, or `setnet repair` the library"
        ) from None


def _unknown(reply: Message, error: UnknownAttributeError) -> Message:
    return replace(reply, fields={**reply.fields, "unknown": str(error)})


def _key(call: Message) -> Key:
    return int(call.fields["epoch"]), int(call.fields["shard"])
