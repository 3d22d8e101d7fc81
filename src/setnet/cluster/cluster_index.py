"""`ClusterIndex`: the calls of `SetIndex`, answered by shards on any number of machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.cluster.engine.in_process import InProcessEngine
from setnet.cluster.engine.protocol import Engine
from setnet.cluster.partial_answer import Hits
from setnet.cluster.search.cluster_search import ClusterSearch, View
from setnet.cluster.search.dispatch import Dispatcher
from setnet.cluster.shard_changes import ClusterWriting
from setnet.cluster.storage import published
from setnet.cluster.storage.cluster_copy import copy_cluster
from setnet.cluster.storage.cluster_file import ClusterFile
from setnet.cluster.storage.places import EpochFolder, shard_of
from setnet.durable import own_errors, storage_errors
from setnet.errors import InvalidInputError
from setnet.index import (
    BackupReport,
    Contents,
    Hit,
    Item,
    MoreOptions,
    QueryLike,
    RankedItems,
    Report,
    SearchOptions,
    Settings,
    Shape,
    Stats,
    chosen_head,
)
from setnet.sets import ELEMENT_LOGISTIC, Logistic
from setnet.workers import Limits, Message, Service

if TYPE_CHECKING:
    from setnet.cluster.engine.task_pool import TaskPool

DEADLINE = 10.0  # seconds
REPLICAS = 2


class ClusterIndex(ClusterWriting):
    """An index cut into shards by a hash of the items' ids; answers are those of one `SetIndex`.

    Searches see the state of the latest `publish`, all shards as of the same moment. They are exact, or an
    error names the shards that are missing. Changes may be repeated.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> dress, bag, shoe = np.eye(3)
    >>> index = ClusterIndex.create(tempfile.mkdtemp() + "/outfits", shards=2, dim=3)
    >>> index.add(["party", "office"], np.stack([dress, bag, shoe, bag]), counts=[2, 2])
    >>> _ = index.publish()
    >>> [hit.id for hit in index.search(np.stack([dress, bag]), k=2)]
    ['party', 'office']
    >>> index.close()
    """

    def __init__(
        self,
        path: Path,
        engine: Engine | None = None,
        deadline: float = DEADLINE,
        unpublished: bool = False,
    ) -> None:
        """Use `create` or `open` instead."""
        self.path, self._unpublished = path, unpublished
        file = ClusterFile.read(path)
        self._dispatcher = Dispatcher(engine or InProcessEngine(path), deadline)
        self._settings = Settings.of_json(file.settings)

    @classmethod
    def create(
        cls,
        path: str | Path,
        shards: int,
        dim: int,
        *,
        replicas: int = REPLICAS,
        precision: str = "float32",
        logistic: tuple[float, float] | Logistic = ELEMENT_LOGISTIC,
        head: str | None = None,
        set_dim: int | None = None,
        set_bits: int = 32,
        set_logistic: tuple[float, float] | Logistic | None = None,
        code_centre: ArrayLike | None = None,
    ) -> ClusterIndex:
        """Make a new, empty cluster in the folder ``path``, on storage that all its machines share.

        Parameters
        ----------
        shards
            Number of shards; `grow` adds some later.
        replicas
            How many workers may be asked for one shard: when one is late, another is.
        head
            The name of a shipped head, ``"mean"`` (the default) or ``"none"``.
        code_centre
            What the one-bit codes of all shards are taken around; by default the mean of what is added first.
        dim, precision, logistic, set_dim, set_bits, set_logistic
            As for `SetIndex.create`.
        """
        root = Path(path)
        if head is not None and not isinstance(head, str):
            raise InvalidInputError("the head of a cluster is a name, which every machine can load")
        made = chosen_head(head, dim, set_dim, set_bits)
        settings = Settings.new(dim, precision, logistic, made, set_dim, set_bits, set_logistic, code_centre)
        centre = settings.shape.code_centre
        plain = replace(settings, shape=replace(settings.shape, code_centre=None))
        with storage_errors(root, "cannot create a cluster: "):
            ClusterFile.create(root, shards, replicas, plain)
            if centre is not None:
                cls._fix_centre(root, list(centre))
            return cls(root)

    @classmethod
    def open(
        cls,
        path: str | Path,
        engine: Engine | None = None,
        *,
        deadline: float = DEADLINE,
        unpublished: bool = False,
    ) -> Self:
        """Open a cluster; without an engine, its shards are read and written in this process.

        ``deadline`` is how many seconds a shard may take to answer a search; a change may take six times as
        long. With ``unpublished``, `in` and `elements` see what is not yet published too, as whoever writes
        needs; searches never do.
        """
        with storage_errors(Path(path)):
            return cls(Path(path), engine, deadline, unpublished)

    def close(self) -> None:
        """Give up all connections and files."""
        self._dispatcher.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def engine(self) -> Engine:
        """What serves the shards."""
        return self._dispatcher.engine

    def task_pool(self, service: Service, limits: Limits | None = None) -> TaskPool | None:
        """Return a pool that runs a service's tasks on all machines; None when there is only this process."""
        pool: Callable[..., TaskPool] | None = getattr(self.engine, "pool", None)
        return None if pool is None else pool(service, limits)

    @property
    def shape(self) -> Shape:
        """Dimension and precision of the elements, and the set vectors beside them if any."""
        return self._settings.shape

    @property
    def logistic(self) -> Logistic:
        """(w, b) of the score of a pair of elements."""
        return self._settings.logistic

    @property
    def set_logistic(self) -> Logistic:
        """(w, b) of the score of a set vector."""
        return self._settings.set_logistic

    # -- searching -----------------------------------------------------------------------------------

    def search(
        self,
        query: QueryLike,
        k: int = 100,
        mode: str = "exact",
        *,
        partial: bool = False,
        **options: Unpack[MoreOptions],
    ) -> Hits:
        """Return the k items that hold most of the query's elements, best first, as `SetIndex.search` does.

        With ``partial``, shards that do not answer are left out, and ``missing`` of the answer names them.
        """
        return self._hits([query], SearchOptions(k, mode, **options), partial)[0]

    def search_many(
        self,
        queries: Sequence[QueryLike],
        k: int = 100,
        mode: str = "exact",
        *,
        partial: bool = False,
        **options: Unpack[MoreOptions],
    ) -> list[Hits]:
        """Answer several queries as `search` does, with the same options."""
        return self._hits(queries, SearchOptions(k, mode, **options), partial)

    def answer(self, queries: Sequence[QueryLike], options: SearchOptions) -> list[list[Hit]]:
        """Answer queries with options that were checked before."""
        return list(self._hits(queries, options, partial=False))

    @own_errors
    def _hits(self, queries: Sequence[QueryLike], options: SearchOptions, partial: bool) -> list[Hits]:
        search = self._search(options, partial)
        if options.mode == "tags":
            found = search.tagged(queries)
        else:
            found = [items.hits() for items in search.ranked(queries)]
        missing = tuple(sorted(search.missing))
        return [Hits(hits, missing) for hits in found]

    @own_errors
    def ranked(self, query: QueryLike, options: SearchOptions) -> RankedItems:
        """Return the hits of a query as arrays."""
        return self._search(options).ranked([query])[0]

    @own_errors
    def rerank(
        self, query: QueryLike, ids: Sequence[str], k: int = 100, **options: Unpack[MoreOptions]
    ) -> list[Hit]:
        """Return the best k of the items named by ``ids``, by the matching of their elements."""
        search = self._search(SearchOptions(k, **options))
        return search.among(query, ids).hits()

    def _search(self, options: SearchOptions, partial: bool = False) -> ClusterSearch:
        return ClusterSearch(self._view(), self._dispatcher, options, partial)

    def _view(self) -> View:
        """Return the latest published state."""
        file = ClusterFile.read(self.path)
        return View(file.epoch, published.latest(EpochFolder(self.path, file.epoch)), self._settings)

    # -- reading -------------------------------------------------------------------------------------

    @own_errors
    def __len__(self) -> int:
        return self._view().published.items

    @own_errors
    def __contains__(self, item: object) -> bool:
        if self._unpublished and isinstance(item, str):
            return not self._written(item, "missing", ids=[item]).fields["ids"]
        view = self._view()
        if not isinstance(item, str) or not view.published.versions:
            return False
        reply = self._one(view, shard_of(item, len(view.published.versions)), "contains", ids=[item])
        return bool(reply.fields["there"][0])

    @own_errors
    def elements(self, item: str) -> NDArray[np.float32]:
        """Return the elements of an item as stored."""
        if self._unpublished:
            return self._written(item, "written", id=item).arrays["elements"]
        view = self._view()
        if not view.published.versions:
            raise InvalidInputError(f"id {item!r} is not in the index")
        reply = self._one(view, shard_of(item, len(view.published.versions)), "elements", id=item)
        return reply.arrays["elements"]

    @own_errors
    def sample(self, count: int) -> NDArray[np.float32]:
        """Return about ``count`` elements, or all there are, from each shard a share."""
        replies = self._all("sample", count=max(1, -(-count // max(1, len(self._view().published.versions)))))
        found = [reply.arrays["elements"] for reply in replies]
        return np.concatenate([np.empty((0, self.shape.dim), np.float32), *found])[:count]

    @own_errors
    def contents(self) -> Contents:
        """Return the ids, counts and elements of all items at once, shard after shard."""
        replies = self._all("contents")
        counts = [reply.arrays["counts"] for reply in replies]
        elements = [reply.arrays["elements"] for reply in replies]
        return Contents(
            [name for reply in replies for name in reply.fields["ids"]],
            np.concatenate([np.empty(0, np.int64), *counts]),
            np.concatenate([np.empty((0, self.shape.dim), np.float32), *elements]),
        )

    def items(self) -> Iterator[Item]:
        """Yield all items, shard after shard."""
        view = self._view()
        for shard in range(len(view.published.versions)):
            yield from (Item(**item) for item in self._one(view, shard, "items").fields["items"])

    @own_errors
    def stats(self) -> Stats:
        """Return what the published shards hold and their size on disk."""
        found = [reply.fields["stats"] for reply in self._all("stats")]
        return _added_up(found, self._settings)

    @own_errors
    def check(self) -> Report:
        """Verify every published shard, and that each holds the items that belong to it."""
        file = ClusterFile.read(self.path)
        replies = self._all("check", shards=file.shards)
        problems = [problem for reply in replies for problem in reply.fields["problems"]]
        return Report(not problems, problems)

    @own_errors
    def backup(self, to: str | Path) -> BackupReport:
        """Copy what searches see, by this process, to a new folder, which then is a cluster too."""
        return copy_cluster(self.path, Path(to))

    def _written(self, item: str, name: str, **fields: Any) -> Message:
        """Return what the writer of an item's shard says of it."""
        file = ClusterFile.read(self.path)
        shard = shard_of(item, file.shards)
        return self._dispatcher.change(shard, Message(name, {"epoch": file.epoch, "shard": shard, **fields}))

    def _one(self, view: View, shard: int, name: str, **fields: Any) -> Message:
        replies, _ = self._dispatcher.ask({shard: Message(name, {**view.address(shard), **fields})})
        return replies[shard]

    def _all(self, name: str, **fields: Any) -> list[Message]:
        view = self._view()
        shards = range(len(view.published.versions))
        messages = {shard: Message(name, {**view.address(shard), **fields}) for shard in shards}
        replies, _ = self._dispatcher.ask(messages, long=True)
        return [replies[shard] for shard in shards]


def _added_up(found: Sequence[Mapping[str, Any]], settings: Settings) -> Stats:
    """Return the numbers of all shards together."""
    sets = settings.shape.sets
    added = ("items", "elements", "segments", "deleted")
    total: dict[str, Any] = {f.name: 0 for f in fields(Stats)} | {
        "dim": settings.shape.dim,
        "precision": settings.shape.precision,
        "set_vectors": "none" if sets is None else sets.name,
        "set_dim": 0 if sets is None else sets.dim,
        "set_bits": 0 if sets is None else sets.bits,
        "kernels": ", ".join(sorted({stats["kernels"] for stats in found})),
        "tags": max((stats["tags"] for stats in found), default=0),
    }
    total |= {name: sum(stats[name] for stats in found) for name in added}
    total["bytes_by_file"] = {
        f"shard-{shard:04d}/{name}": size
        for shard, stats in enumerate(found)
        for name, size in stats["bytes_by_file"].items()
    }
    return Stats(**total)
