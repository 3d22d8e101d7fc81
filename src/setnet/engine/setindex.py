"""`SetIndex`: sets of vectors on disk, added, changed and searched."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.durable import own_errors, storage_errors
from setnet.engine.arrow import from_table, to_table
from setnet.engine.collection import CollectionReader
from setnet.engine.files import create_files, require_index
from setnet.engine.kernels import backend
from setnet.engine.manifest import is_collection
from setnet.engine.query import Mode, Query, QueryLike, SearchOptions
from setnet.engine.rank import best_items, best_of, comparable, ranked_items
from setnet.engine.reader import IndexReader
from setnet.engine.recovery import BackupReport, RepairReport, back_up, repair_index
from setnet.engine.results import Contents, Item, RankedItems, Report, Stats
from setnet.engine.settings import IndexOptions, SetSpec, Settings, Shape, check_int, head_named
from setnet.engine.snapshot import Allowed, Snapshot
from setnet.engine.writer import Attributes, Writer
from setnet.errors import InvalidInputError
from setnet.heads import Aggregator, Logistic


def stats_of(reader: IndexReader) -> Stats:
    """Return the numbers of an open index, its size file by file."""
    items, elements, segments, deleted = reader.totals()
    shape = reader.settings.shape
    sets = shape.sets or SetSpec("none", 0, 0)
    return Stats(
        items=items, elements=elements, segments=segments, deleted=deleted,
        bytes_by_file=reader.file_sizes(), dim=shape.dim, precision=shape.precision, set_vectors=sets.name,
        set_dim=sets.dim, set_bits=sets.bits, budget=shape.bytes_per_item,
        over_budget=reader.snapshot().over_budget(), kernels=backend.level(),
    )  # fmt: skip


def _remove_own(folder: str, process: int) -> None:
    """Remove the folder of an index in memory, unless a fork has inherited it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


class SetIndex:
    """An index of items, each a set of vectors ("elements"), that survives whatever happens to its process.

    Searches run beside one writer, in any number of threads and processes; each works on the state of the
    latest commit. Use as a context manager, or call `close`.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from setnet import SetIndex
    >>> dress, bag, shoe = np.eye(3)
    >>> index = SetIndex.create(tempfile.mkdtemp() + "/outfits", dim=3)
    >>> index.add(["party", "office"], np.stack([dress, bag, shoe, bag]), counts=[2, 2])
    >>> [hit.id for hit in index.search(np.stack([dress, bag]), k=2)]
    ['party', 'office']
    >>> index
    SetIndex('/.../outfits', dim=3, 2 items)
    >>> index.close()
    """

    def __init__(self, path: str | Path, read_only: bool, head: Aggregator | None) -> None:
        """Use `create` or `open` instead."""
        self.path, self.read_only = Path(path), read_only
        self._address = os.fspath(path) if is_collection(path) else os.path.abspath(path)
        self._remove: Callable[[], object] | None = None  # of an index in memory
        self._writer = None if read_only else Writer(self.path, head)
        reader = CollectionReader if is_collection(path) else IndexReader
        self._reader: IndexReader = self._writer.reader if self._writer else reader(path, head)

    # -- life ----------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: str | Path, dim: int, **options: Unpack[IndexOptions]) -> SetIndex:
        """Make a new, empty index in the folder ``path`` and open it for writing.

        Parameters
        ----------
        path
            Folder to make; it must not exist or be empty.
        dim
            Dimension of the elements, 1 to 4096.
        precision
            How elements are stored: ``"float32"`` or ``"float16"``.
        logistic
            (w, b) for elements: a matched pair of similarity s adds sigmoid(w s + b) to an item's score.
        head
            What makes the set vectors: an aggregator, the name of a shipped head, ``"mean"`` (the default)
            or ``"none"``.
        set_dim, set_bits
            Dimension (up to 4096) and bits per dimension (32, 16, 8, 4 or 1) of set vectors that the caller
            passes to `add`; ``set_bits`` also applies to ``"mean"``.
        set_logistic
            (w, b) for set vectors; the head's own by default.
        bytes_per_item
            Keep each item's elements in so many bytes, 16 to 65,536, instead of as floats: they share them,
            and an element has two bytes at least. Elements must have unit length, ``dim`` is 1,024 at most,
            and set vectors are kept only if ``head`` or ``set_dim`` asks for them.
        """
        root = Path(path)
        settings, made = Settings.new(dim, **options)
        with storage_errors(root, "cannot create an index: "):
            create_files(root, settings.meta())
            return cls(root, read_only=False, head=made)

    @classmethod
    def open(
        cls, path: str | Path, read_only: bool = False, *, head: Aggregator | str | None = None
    ) -> SetIndex:
        """Open an index; for writing unless ``read_only``, which never waits and never locks.

        No file is trusted: what is read is compared with its checksum the first time, and every number that
        is used as a position is verified.

        A collection, in a folder or at an address such as ``s3://bucket/faces``, is opened for reading:
        `Collection` changes it.
        """
        root = Path(path)
        remote = is_collection(path)
        if not remote:
            require_index(root)
        if isinstance(head, str):
            head = head_named(head, 0, 32)
        with storage_errors(root):
            return cls(path if remote else root, read_only or remote, head)

    @classmethod
    def open_or_create(cls, path: str | Path, dim: int, **options: Unpack[IndexOptions]) -> SetIndex:
        """Open an index for writing, or `create` it where there is none; one of other settings is an error.

        >>> path = tempfile.mkdtemp() + "/outfits"
        >>> SetIndex.open_or_create(path, dim=3).close()
        >>> SetIndex.open_or_create(path, dim=4)
        Traceback (most recent call last):
        setnet.errors.InvalidInputError: /.../outfits was made with dim=3, not 4: open it with SetIndex.open
        """
        root = Path(path)
        if not root.exists() or not any(root.iterdir()):
            return cls.create(root, dim, **options)
        index = cls.open(root, head=options.get("head"))
        for name, value in {"dim": dim, **options}.items():
            if name not in ("dim", "precision", "logistic", "bytes_per_item"):
                continue
            found = index.logistic if name == "logistic" else getattr(index.shape, name)
            if found not in (value, Logistic(*value) if isinstance(value, tuple) else value):
                index.close()
                raise InvalidInputError(
                    f"{root} was made with {name}={found!r}, not {value!r}: open it with SetIndex.open"
                )
        return index

    @classmethod
    def in_memory(cls, dim: int, **options: Unpack[IndexOptions]) -> SetIndex:
        """Make an index that is gone when it is closed; the parameters are those of `create`.

        It is a folder in the system's memory (``/dev/shm``), of temporary files where there is none.

        >>> with SetIndex.in_memory(dim=3) as index:
        ...     index.add({"party": np.eye(3)[:2]})
        ...     len(index)
        1
        """
        memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made
        folder = tempfile.mkdtemp(prefix="setnet-", dir=memory if os.access(memory, os.W_OK) else None)
        try:
            index = cls.create(Path(folder, "index"), dim, **options)
        except BaseException:
            shutil.rmtree(folder)
            raise
        index._remove = weakref.finalize(index, _remove_own, folder, os.getpid())
        return index

    @staticmethod
    def repair(path: str | Path, revive: bool = False) -> RepairReport:
        """Rebuild a damaged index in place from its segments, and report what could not be saved.

        The old catalogue is kept in the folder ``quarantine`` until the next `compact`, or for a week. Items
        that were deleted stay deleted: catalogue and commit log say which, and the newer sound one counts.
        Where neither does, nothing is done unless ``revive`` is set.
        """
        with storage_errors(Path(path), "cannot repair: "):
            return repair_index(Path(path), revive)

    def backup(self, to: str | Path) -> BackupReport:
        """Copy the index, as of the latest commit, into another folder while it is searched and written.

        The folder is new, empty or an earlier backup, of which unchanged segments are kept. A backup is an
        index: open it where it is, or back it up to another place.
        """
        with storage_errors(Path(to), "cannot back up: "), self._reader.consistent() as (catalog, snapshot):
            return back_up(catalog, snapshot, Path(to))

    @own_errors
    def close(self) -> None:
        """Give up the write lock and all files; searches still running end on what they hold."""
        (self._writer or self._reader).close()
        if self._remove:
            self._remove()

    def __repr__(self) -> str:
        state = "closed" if self._reader.closed else f"dim={self.shape.dim}, {len(self)} items"
        return f"SetIndex({self._address!r}, {state}{', read-only' * self.read_only})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the address alone: whoever loads it opens the index there, for reading."""
        return SetIndex.open, (self._address, True)

    def __enter__(self) -> SetIndex:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def shape(self) -> Shape:
        """Dimension and precision of the elements, and the set vectors beside them if any."""
        return self._reader.settings.shape

    @property
    def logistic(self) -> Logistic:
        """(w, b) of the score of a pair of elements."""
        return self._reader.settings.logistic

    # -- writing -------------------------------------------------------------------------------------

    @own_errors
    def add(
        self,
        ids: Sequence[str] | Mapping[str, ArrayLike],
        elements: ArrayLike | Sequence[ArrayLike] | None = None,
        counts: ArrayLike | None = None,
        attributes: Attributes | None = None,
        set_vectors: ArrayLike | None = None,
    ) -> None:
        """Add items, or replace those whose id is stored already: all of them or, on any error, none.

        Parameters
        ----------
        ids
            One string per item, at most 512 bytes, no two the same; or a mapping from ids to elements.
        elements
            An (n, dim) array per item; or, with ``counts``, one array of all items' elements, one item after
            another. They are stored as given: normalise them if similarities shall be cosines.
        counts
            Number of elements of each item; 0 is allowed, such an item is stored and never found.
        attributes
            A mapping per item, in the order of ids or by id, for conditions: strings, numbers or None.
        set_vectors
            (len(ids), set_dim) when the caller makes them; otherwise the head does.

        Examples
        --------
        >>> index = SetIndex.in_memory(dim=3)
        >>> index.add({"party": np.eye(3)[:2], "office": np.eye(3)[1:]}, attributes={"party": {"year": 2019}})
        >>> index.add(["beach"], [np.eye(3)[:1]])
        >>> index["party"]
        Item(id='party', elements=2, attributes={'year': 2019})
        """
        self._writable().add(ids, elements, counts, attributes, set_vectors)

    @own_errors
    def update(self, attributes: Mapping[str, Mapping[str, Any]]) -> None:
        """Change attributes of items, by id: those given are set, or removed where None; others stay.

        The items are stored again, as all that is on disk stays as it is.

        >>> with SetIndex.in_memory(dim=3) as index:
        ...     index.add({"party": np.eye(3)[:2]}, attributes={"party": {"year": 2019, "place": "Rome"}})
        ...     index.update({"party": {"year": 2020, "place": None}})
        ...     index["party"].attributes
        {'year': 2020}
        """
        self._writable().update(attributes)

    @own_errors
    def delete(self, ids: Sequence[str] | None = None, *, where: Mapping[str, Any] | None = None) -> int:
        """Delete items by their ids, or all that meet conditions as in `search`; return how many.

        An id that is not stored is an error, and then nothing is deleted.

        >>> with SetIndex.in_memory(dim=3) as index:
        ...     index.add({"a": np.eye(3)[:1], "b": np.eye(3)}, attributes={"b": {"year": 2019}})
        ...     index.delete(where={"year": {"<": 2020}}), "a" in index, "b" in index
        (1, True, False)
        """
        if (ids is None) == (not where):
            raise InvalidInputError("delete takes ids, or conditions as where=, and one of the two")
        return self._writable().delete(ids, where)

    @own_errors
    def compact(self, lists: bool | None = None) -> None:
        """Merge segments, up to four million items into one, and take deleted items off the disk for good.

        It needs as much free disk as the segments that become the largest one take.

        Parameters
        ----------
        lists
            Whether to make the inverted lists that ``fast`` search reads (140 bytes per element of 128
            dimensions); by default in segments of 500,000 items. Items added later are in no list, and
            ``fast`` scores all of them, until the next time.
        """
        self._writable().compact(lists)

    def _writable(self) -> Writer:
        if self._writer is None:
            self._reader.ensure_open()
            raise InvalidInputError(f"{self.path} is open read-only: {self._reader.how_to_write}")
        return self._writer

    # -- searching -----------------------------------------------------------------------------------

    def search(
        self, query: QueryLike, k: int = 100, mode: Mode = "exact", **options: Unpack[SearchOptions]
    ) -> RankedItems:
        """Return the k items that hold most of the query's elements, best first.

        Parameters
        ----------
        query
            (Q, dim) array, or a list with one (n, dim) array of examples per query element.
        k
            How many hits at most. With ``at_least``, a ``k`` of the index's length costs little: items that
            cannot match are not scored.
        mode
            ``"exact"``: matching of all elements of all items; ``"set"``: set vectors only; ``"fast"``:
            the same scores, of the items that inverted lists hold near the query or, with ``first="sets"``,
            of those with the best set vectors. Without lists, or where they would take longer, it is
            ``"exact"``.
        **options
            ``where``, ``at_least``, ``only``, ``without`` and the others of `SearchOptions`.

        Returns
        -------
        A sequence of `Hit`, kept as arrays of which objects are made when somebody asks for them.
        """
        return self.search_many([query], k, mode, **options)[0]

    @own_errors
    def search_many(
        self,
        queries: Sequence[QueryLike],
        k: int = 100,
        mode: Mode = "exact",
        **options: Unpack[SearchOptions],
    ) -> list[RankedItems]:
        """Answer several queries as `search` does, with the same options, in one pass over the vectors."""
        snapshot, allowed = self._view(options)
        with snapshot.intact():
            return best_items(snapshot, allowed, self._asked(queries, k, mode, options))

    @own_errors
    def rerank(
        self, query: QueryLike, ids: Sequence[str], k: int = 100, **options: Unpack[SearchOptions]
    ) -> RankedItems:
        """Return the best k of the items named by ``ids``, by the matching of their elements.

        What ``mode="fast"`` does with its candidates, for candidates of another origin. Items without
        elements are never hits. Of the options, those on elements count, as in `SearchOptions`.
        """
        snapshot, _ = self._view({})
        (asked,) = self._asked([query], k, "exact", options)
        rows = comparable(snapshot, snapshot.find(self._reader.seqs_of(ids)), asked)
        with snapshot.intact():
            return ranked_items(snapshot, best_of(snapshot, rows, asked), asked)

    def _view(self, options: SearchOptions) -> tuple[Snapshot, Allowed]:
        """Return the latest snapshot, and which rows satisfy the conditions on attributes."""
        where = options.get("where")
        if where is not None and not isinstance(where, Mapping):
            raise InvalidInputError(f"where must map attribute names to conditions, not be {where!r:.80}")
        return self._reader.view(where)

    def _asked(self, queries: Sequence[QueryLike], k: int, mode: Mode, options: SearchOptions) -> list[Query]:
        settings, known = self._reader.settings, self._reader.known_pairs(options.get("known"))
        head = partial(getattr, self._reader, "head")
        return [Query.of_index(query, settings, head, known, k, mode, **options) for query in queries]

    # -- reading -------------------------------------------------------------------------------------

    @own_errors
    def __len__(self) -> int:
        return self._reader.living_items()

    @own_errors
    def __contains__(self, item: object) -> bool:
        return bool(self._reader.known_seqs([item] if isinstance(item, str) else []))

    @own_errors
    def __getitem__(self, item: str) -> Item:
        """Return an item with its attributes; `elements` has its vectors."""
        seqs, snapshot = self._reader.seqs_of([item]), self._reader.snapshot()
        for s, rows in snapshot.find(seqs):
            return snapshot.items_of(s, rows)[0]
        raise InvalidInputError(f"id {item!r} is not in the index")

    def __iter__(self) -> Iterator[Item]:
        """Yield all items in order of segments and insertion, a chunk of them in memory at a time."""
        with storage_errors(self.path):
            yield from self._reader.snapshot().items()

    @own_errors
    def elements(self, item: str) -> NDArray[np.float32]:
        """Return the elements of an item as stored."""
        seqs, snapshot = self._reader.seqs_of([item]), self._reader.snapshot()
        with snapshot.intact():
            for s, rows in snapshot.find(seqs):
                return snapshot.segments[s].elements_of(rows).astype(np.float32)
        raise InvalidInputError(f"id {item!r} is not in the index")

    @own_errors
    def contents(self) -> Contents:
        """Return the ids, counts and elements of all items at once; `items` needs less memory."""
        snapshot = self._reader.snapshot()
        with snapshot.intact():
            return snapshot.contents()

    def blocks(self, items: int = 4096) -> Iterator[Contents]:
        """Yield what `contents` returns, so many items or fewer at a time."""
        with storage_errors(self.path):
            yield from self._reader.snapshot().blocks(items)

    @property
    def generation(self) -> int:
        """A number that every change of the index raises."""
        return self._reader.snapshot().generation

    @own_errors
    def to_arrow(self) -> Any:
        """Return all items as a `pyarrow.Table`: ``id``, ``elements`` and a column for each attribute.

        It needs the extra ``collection``; `add_arrow` takes such a table.

        >>> with SetIndex.in_memory(dim=3) as index, SetIndex.in_memory(dim=3) as copy:
        ...     index.add({"party": np.eye(3)[:2]}, attributes={"party": {"year": 2019}})
        ...     copy.add_arrow(index.to_arrow())
        ...     copy["party"]
        Item(id='party', elements=2, attributes={'year': 2019})
        """
        snapshot = self._reader.snapshot()
        with snapshot.intact():
            return to_table(snapshot.contents(), [item.attributes for item in snapshot.items()])

    def add_arrow(self, table: Any) -> None:
        """Add the items of a table as `to_arrow` makes it; null is no attribute."""
        self.add(*from_table(table))

    @own_errors
    def sample(self, count: int) -> NDArray[np.float32]:
        """Return ``count`` elements, or all there are, evenly spaced over the items in order of insertion."""
        snapshot = self._reader.snapshot()
        with snapshot.intact():
            return snapshot.sample(check_int("count", count, 1))

    @own_errors
    def stats(self) -> Stats:
        """Return what the index holds and its size on disk, file by file."""
        return stats_of(self._reader)

    @own_errors
    def check(self) -> Report:
        """Verify every checksum, and that the catalogue and the segments agree; name what is damaged."""
        return self._reader.check()
