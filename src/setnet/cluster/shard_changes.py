"""The writing side of a cluster: changes cut by shard, each acknowledged by the shard's one writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.cluster.search.dispatch import Dispatcher
from setnet.cluster.storage import published
from setnet.cluster.storage.cluster_file import ClusterFile
from setnet.cluster.storage.growth import grow
from setnet.cluster.storage.places import EpochFolder, shard_of
from setnet.cluster.storage.shard_writer import code_centre, fix_code_centre
from setnet.durable import own_errors
from setnet.errors import InvalidInputError
from setnet.index import RepairReport, Settings, check_ids, checked_batch, mean_of
from setnet.workers import Message

AT_ONCE = 16  # shards that are changed at one time


class ClusterWriting:
    """The part of `ClusterIndex` that changes it."""

    path: Path
    _dispatcher: Dispatcher
    _settings: Settings

    @own_errors
    def add(
        self,
        ids: Sequence[str],
        elements: ArrayLike,
        counts: ArrayLike,
        attributes: Sequence[Mapping[str, Any] | None] | None = None,
        set_vectors: ArrayLike | None = None,
    ) -> None:
        """Add items, or replace those whose id is stored already; searches see them after `publish`.

        Returns when the writers of all shards concerned have stored their items for good. On an error some
        shards may have stored theirs; the call can be repeated, and changes nothing the second time.
        """
        shape = self._settings.shape
        given = shape.sets is not None and shape.sets.name == "given"
        if set_vectors is not None and not given:
            raise InvalidInputError(
                "this cluster makes its set vectors itself: leave set_vectors out, or create it with set_dim="
            )
        checked = shape if given else replace(shape, sets=None)
        batch, details = checked_batch(ids, elements, counts, attributes, set_vectors, checked, None)
        if not batch.ids:
            return
        if code_centre(self.path) is None:
            self._fix_centre(self.path, mean_of(batch.elements).tolist())
        vectors = None if set_vectors is None else np.asarray(set_vectors, np.float32)

        def part(rows: NDArray[np.int64]) -> Message:
            spans = [np.arange(batch.offsets[i], batch.offsets[i + 1]) for i in rows.tolist()]
            arrays = {
                "elements": batch.elements[np.concatenate(spans)].astype(np.float32),
                "counts": batch.counts[rows],
            }
            if vectors is not None:
                arrays["set_vectors"] = vectors[rows]
            fields = {
                "ids": [batch.ids[i] for i in rows.tolist()],
                "attributes": None if details is None else [details[i] for i in rows.tolist()],
            }
            return Message("add", fields, arrays)

        self._change_rows(list(batch.ids), part)

    @own_errors
    def delete(self, ids: Sequence[str], missing_ok: bool = False) -> None:
        """Delete items; an id that is not stored is an error, unless ``missing_ok``, and nothing is deleted.

        With ``missing_ok`` the call can be repeated.
        """
        names = check_ids(ids)

        def named(call: str) -> Callable[[NDArray[np.int64]], Message]:
            return lambda rows: Message(call, {"ids": [names[i] for i in rows.tolist()]})

        if not names:
            return
        if not missing_ok:
            replies = self._change_rows(names, named("missing"))
            unknown = {name for reply in replies for name in reply.fields["ids"]}
            first = next((name for name in names if name in unknown), None)
            if first is not None:
                raise InvalidInputError(f"id {first!r} is not in the index: nothing was deleted")
        self._change_rows(names, named("delete"))

    @own_errors
    def tag(self, gallery: Mapping[str, ArrayLike], threshold: float = 0.5) -> int:
        """Recognise known vectors in all items, as `SetIndex.tag` does; seen after `publish`."""
        if not gallery:
            raise InvalidInputError("the gallery is empty: give at least one name with its examples")
        groups = [np.atleast_2d(np.asarray(group, np.float32)) for group in gallery.values()]
        sizes = np.array([len(group) for group in groups], np.int64)
        arrays: dict[str, NDArray[Any]] = {"examples": np.concatenate(groups), "sizes": sizes}
        message = Message("tag", {"names": list(gallery), "threshold": threshold}, arrays)
        return sum(reply.fields["entries"] for reply in self._change_all(message, long=True))

    @own_errors
    def compact(self, lists: bool | None = None) -> None:
        """Merge the segments of all shards, publish, and take deleted items off the disk for good.

        Earlier versions go with them: a search under way in that moment may have to be repeated. ``lists`` is
        as for `SetIndex.compact`.
        """
        self._change_all(Message("compact", {"lists": lists}), long=True)
        self.publish()
        published.drop_old(EpochFolder(self.path, ClusterFile.read(self.path).epoch), kept=1)

    @own_errors
    def publish(self) -> int:
        """Let searches see all that was acknowledged so far, in all shards at once; return how many items."""
        file = ClusterFile.read(self.path)
        if code_centre(self.path) is None:  # nothing was ever added
            return 0
        replies = self._change_all(Message("publish"))
        versions = [published.Version(r.fields["name"], r.fields["items"]) for r in replies]
        return published.publish(EpochFolder(self.path, file.epoch), versions).items

    @own_errors
    def grow(self, shards: int) -> None:
        """Spread the items over more shards, while searches go on; quickest over a multiple of their number.

        Changes are refused with `FencedError` meanwhile, and can be repeated afterwards.
        """
        grow(self.path, shards)

    @own_errors
    def repair(self, revive: bool = False) -> RepairReport:
        """Repair damaged shards as `SetIndex.repair` does, and publish; return what was saved of these.

        Shards without damage are left as they are. The folders that a repair replaces are kept beside the new
        ones until `compact`.
        """
        replies = self._change_all(Message("repair", {"revive": revive}), long=True)
        found = [(shard, reply.fields["repaired"]) for shard, reply in enumerate(replies)]
        done = [(shard, fields) for shard, fields in found if fields is not None]
        if done:
            self.publish()
        lost = [f"shard {shard}: {text}" for shard, fields in done for text in fields["lost"]]
        total = {key: sum(fields[key] for _, fields in done) for key in ("items", "segments", "revived")}
        return RepairReport(lost=tuple(lost), **total)

    @staticmethod
    def _fix_centre(root: Path, centre: list[float]) -> None:
        fix_code_centre(root, centre)

    def _change_rows(self, ids: Sequence[str], part: Callable[[NDArray[np.int64]], Message]) -> list[Message]:
        """Change the shards of some items; ``part`` returns the message about the items at some places."""
        file = ClusterFile.read(self.path)
        home = np.array([shard_of(name, file.shards) for name in ids])
        shards = np.unique(home).tolist()
        return self._changed(file, {shard: part(np.flatnonzero(home == shard)) for shard in shards})

    def _change_all(self, message: Message, *, long: bool = False) -> list[Message]:
        file = ClusterFile.read(self.path)
        return self._changed(file, dict.fromkeys(range(file.shards), message), long=long)

    def _changed(
        self, file: ClusterFile, messages: Mapping[int, Message], *, long: bool = False
    ) -> list[Message]:
        def change(shard: int) -> Message:
            message = messages[shard]
            address = {"epoch": file.epoch, "shard": shard}
            addressed = replace(message, fields={**message.fields, **address})
            return self._dispatcher.change(shard, addressed, long=long)

        with ThreadPoolExecutor(min(AT_ONCE, len(messages)), "setnet-change") as threads:
            return list(threads.map(change, messages))
