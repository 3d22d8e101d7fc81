"""`SetIndex`: items that are sets of vectors, on disk, searched by sets of people."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.errors import InvalidInputError, NotAnIndexError, StorageError
from setnet.index.kernels import backend
from setnet.index.results import Hit, Item, Report, Stats
from setnet.index.search import modes as modes
from setnet.index.search import tags
from setnet.index.search.options import (
    GIVEN,
    MAX_SET_DIM,
    MoreOptions,
    Options,
    Settings,
    chosen_head,
    head_named,
    spec_of,
    whole,
)
from setnet.index.search.query import Query, aggregated, as_people
from setnet.index.search.ranking import hits_of
from setnet.index.storage.catalog import Catalog
from setnet.index.storage.check import check_index
from setnet.index.storage.ingest import check_ids, checked_batch
from setnet.index.storage.shape import SetSpec, Shape
from setnet.index.storage.snapshot import Snapshot
from setnet.index.storage.writer import Writer
from setnet.sets import ELEMENT_LOGISTIC, Aggregator, Logistic, Mean

__all__ = ["SetIndex"]

logger = logging.getLogger(__name__)


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
    >>> index.close()
    """

    def __init__(self, path: Path, read_only: bool, head: Aggregator | None) -> None:
        """Use `create` or `open` instead."""
        self.path = path
        self.read_only = read_only
        self._lock = threading.RLock()
        self._writing = threading.RLock()
        self._writer = None if read_only else Writer(path)
        try:
            self._catalog = Catalog(path / "catalog.sqlite", read_only=True)
            with self._catalog.reading():
                self._load_settings()
            self._head = self._checked_head(head)
            self._snapshot: Snapshot | None = None
        except BaseException:
            if self._writer:
                self._writer.close()
            raise

    # -- life ----------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | Path,
        dim: int,
        *,
        precision: str = "float32",
        logistic: tuple[float, float] | Logistic = ELEMENT_LOGISTIC,
        head: Aggregator | str | None = None,
        set_dim: int | None = None,
        set_bits: int = 32,
        set_logistic: tuple[float, float] | Logistic | None = None,
    ) -> SetIndex:
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
        """
        root = Path(path)
        made = chosen_head(head, dim, set_dim, set_bits)
        settings = Settings.new(dim, precision, logistic, made, set_dim, set_bits, set_logistic)
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise InvalidInputError(
                f"{root} exists already: open it with SetIndex.open, or choose another path"
            )
        try:
            (root / "segments").mkdir(parents=True)
            Catalog.create(root / "catalog.sqlite", settings.meta())
        except OSError as error:
            raise StorageError(f"cannot create an index at {root}: {error.strerror or error}") from error
        return cls(root, read_only=False, head=made)

    @classmethod
    def open(
        cls, path: str | Path, read_only: bool = False, *, head: Aggregator | str | None = None
    ) -> SetIndex:
        """Open an index; for writing unless ``read_only``, which never waits and never locks."""
        root = Path(path)
        if not (root / "catalog.sqlite").is_file():
            what = "does not exist" if not root.exists() else "holds no setnet index"
            raise NotAnIndexError(f"{root} {what}: make one with SetIndex.create({str(root)!r}, dim=...)")
        if isinstance(head, str):
            head = head_named(head, 0, 32)
        return cls(root, read_only, head)

    @staticmethod
    def destroy(path: str | Path) -> None:
        """Delete an index and all its files; refuses a folder that is none."""
        SetIndex.open(path).close()
        shutil.rmtree(path)

    def close(self) -> None:
        """Give up the write lock and all files; searches still running end on what they hold."""
        with self._writing, self._lock:
            if self._catalog is not None:
                self._catalog.close()
                if self._writer:
                    self._writer.close()
            self._catalog = None  # type: ignore[assignment]
            self._writer = None
            self._snapshot = None

    def __enter__(self) -> SetIndex:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _load_settings(self) -> None:
        """Read the settings, inside a transaction of the caller's."""
        settings = Settings.of_json(self._catalog.get("settings"))
        self.shape, self.logistic, self.set_logistic = (
            settings.shape,
            settings.logistic,
            settings.set_logistic,
        )

    def _checked_head(self, head: Aggregator | None) -> Aggregator | None:
        sets = self.shape.sets
        if head is None:
            return Mean(self.shape.dim, bits=sets.bits) if sets and sets.name == "mean" else None
        if (made := spec_of(head)) != sets:
            raise InvalidInputError(
                f"head {head.name!r} did not make the set vectors of {self.path}: it is {made}, they are "
                f"{sets or 'none'}. Open the index with the head that made them, or build it anew"
            )
        return head

    @property
    def head(self) -> Aggregator | None:
        """The aggregator behind the set vectors; None when there are none or the caller makes them."""
        sets = self.shape.sets
        if self._head is None and sets is not None and sets.name != GIVEN:
            self._head = self._checked_head(head_named(sets.name, self.shape.dim, sets.bits))
        return self._head

    # -- writing -------------------------------------------------------------------------------------

    def add(
        self,
        ids: Sequence[str],
        elements: ArrayLike,
        counts: ArrayLike,
        attributes: Sequence[Mapping[str, Any] | None] | None = None,
        set_vectors: ArrayLike | None = None,
    ) -> None:
        """Add items, or replace those whose id is stored already: all of them or, on any error, none.

        Parameters
        ----------
        ids
            One string per item, at most 512 bytes, no two the same.
        elements
            (sum(counts), dim): the elements of all items, one item after another; stored as given, so
            normalise them if similarities shall be cosines.
        counts
            Number of elements of each item; 0 is allowed, such an item is stored and never found.
        attributes
            A mapping per item, for conditions: strings, numbers or None.
        set_vectors
            (len(ids), set_dim) when the caller makes them; otherwise the head does.
        """
        with self._writing:
            writer = self._open_writer()
            if set_vectors is not None:
                self._take_given_sets(np.shape(set_vectors))
            snapshot = self._fresh()
            head = self.head if set_vectors is None else None
            batch, details = checked_batch(ids, elements, counts, attributes, set_vectors, self.shape, head)
            if not batch.ids:
                return
            writer.add(batch, details, snapshot)
            self._merge_small(writer)

    def _merge_small(self, writer: Writer) -> None:
        """Merge segments that pile up; a failure costs only tidiness, as the items are stored already."""
        try:
            while due := writer.overfull_tier(self._fresh()):
                writer.merge(self._fresh(), due)
        except StorageError as error:
            logger.warning("small segments of %s were not merged: %s", self.path, error)

    def _take_given_sets(self, shape: tuple[int, ...]) -> None:
        """Switch an index that holds nothing from the default head to set vectors made by the caller."""
        sets = self.shape.sets
        if sets is not None and sets.name == GIVEN:
            return
        if sets is None or sets.name != "mean" or len(self):
            name = sets.name if sets else "none"
            raise InvalidInputError(
                f"this index makes its set vectors itself (head {name!r}): leave set_vectors out, or create "
                "the index with set_dim="
            )
        if len(shape) != 2:
            raise InvalidInputError(f"set vectors have shape {shape}, expected one row per id")
        whole("the set vectors' dimension", shape[1], 1, MAX_SET_DIM)
        given = Shape(self.shape.dim, self.shape.precision, SetSpec(GIVEN, shape[1], sets.bits))
        self._open_writer().change_settings(Settings(given, self.logistic, self.set_logistic).meta())
        self._head = None
        self._fresh()

    def delete(self, ids: Sequence[str]) -> None:
        """Delete items; an id that is not stored is an error, and then nothing is deleted."""
        with self._writing:
            writer = self._open_writer()
            names = check_ids(ids)
            snapshot = self._fresh()
            with writer.catalog.reading():
                found = writer.catalog.seqs_of(names)
            missing = next((i for i in names if i not in found), None)
            if missing is not None:
                raise InvalidInputError(f"id {missing!r} is not in the index: nothing was deleted")
            if found:
                writer.delete(np.array(sorted(found.values()), np.int64), snapshot)

    def compact(self) -> None:
        """Merge all segments into one and drop deleted items from the disk, for good."""
        with self._writing:
            writer = self._open_writer()
            snapshot = self._fresh()
            if len(snapshot.segments) > 1 or any(dead is not None for dead in snapshot.dead):
                writer.merge(snapshot, range(len(snapshot.segments)))
            self._fresh()
            writer.shrink()

    def tag(self, gallery: Mapping[str, ArrayLike], threshold: float = 0.5) -> int:
        """Recognise known people in all items and write an inverted index for ``mode="tags"``.

        ``gallery`` has up to 10 examples per name. An element is tagged with the one name it resembles most
        when sigmoid(w s + b) reaches ``threshold``. Replaces earlier tags; items added later have none until
        the next call. Returns the number of (person, item) entries.
        """
        with self._writing:
            writer = self._open_writer()
            names, rows = tags.gallery_rows(gallery, self.shape.dim)
            found = tags.tagged(self._fresh(), rows, threshold, self.logistic)
            return writer.tag(names, rows, found)

    # -- reading -------------------------------------------------------------------------------------

    def search(
        self,
        people: Any,
        k: int = 100,
        mode: str = "exact",
        candidates: int = 2000,
        where: Mapping[str, Any] | None = None,
        at_least: int = 0,
        only: bool = False,
        without: Any = None,
        aggregate_query: bool = False,
        examples: str = "aggregate",
        matching: str = "greedy",
        threads: int | None = None,
    ) -> list[Hit]:
        """Return the k items that hold most of the people, best first.

        Parameters
        ----------
        people
            (Q, dim) array, or a list with one (n, dim) array of examples per person. In ``tags`` mode, names;
            or a mapping from names to descriptors, to re-rank the first ``candidates`` by them.
        k
            How many hits at most.
        mode
            ``"exact"``: matching of all elements of all items; ``"set"``: set vectors only; ``"fast"``: set
            vectors, then the first ``candidates`` re-ranked exactly; ``"tags"``: by the tags of `tag`.
        candidates
            How many items ``fast`` and ``tags`` re-rank.
        where
            Conditions on attributes, see `setnet.index.search.conditions`.
        at_least
            Least number of people that must be matched (similarity at or above the logistic's threshold).
        only
            Leave out items with an element that matches nobody asked for.
        without
            People, given like ``people``, who must not be in the item.
        aggregate_query
            Turn all people into one set vector (paper 5.2); for ``set`` and ``fast``.
        examples
            What to do with several examples of a person: ``"aggregate"`` them into one descriptor, or take
            the ``"mean"`` or ``"max"`` of their scores.
        matching
            ``"greedy"`` as in the paper, or ``"optimal"`` (Hungarian) for comparison.
        threads
            Number of threads; one per core by default.
        """
        options = Options(k, mode, candidates, at_least, only, aggregate_query, examples, matching, threads)
        return self._search([people], options, where, without)[0]

    def search_many(
        self,
        queries: Sequence[Any],
        k: int = 100,
        mode: str = "exact",
        *,
        where: Mapping[str, Any] | None = None,
        without: Any = None,
        **options: Unpack[MoreOptions],
    ) -> list[list[Hit]]:
        """Answer several queries as `search` does, with the same options, in one pass over the vectors."""
        return self._search(list(queries), Options(k, mode, **options), where, without)

    def rerank(self, people: Any, ids: Sequence[str], k: int = 100, examples: str = "aggregate") -> list[Hit]:
        """Return the best k of the items named by ``ids``, by the matching of their elements.

        What ``mode="fast"`` does with its candidates, for candidates of another origin. Items without
        elements are never hits.
        """
        options = Options(k, examples=examples)
        query = Query.of(as_people(people, self.shape.dim), [], options.examples, self.logistic)
        with self._lock:
            seqs = self._open_catalog().seqs_of(list(ids))
        unknown = next((name for name in ids if name not in seqs), None)
        if unknown is not None:
            raise InvalidInputError(f"id {unknown!r} is not in the index")
        snapshot = self._fresh()
        rows = snapshot.find(np.fromiter(sorted(seqs.values()), np.int64, len(seqs)))
        some = [(s, which[snapshot.segments[s].counts[which] > 0]) for s, which in rows]
        return hits_of(snapshot, modes.best_of(snapshot, some, query, options.k, modes.Conditions()))

    def _search(
        self, queries: list[Any], options: Options, where: Mapping[str, Any] | None, without: Any
    ) -> list[list[Hit]]:
        dim, sets = self.shape.dim, self.shape.sets
        snapshot, allowed = self._view(where)
        unwanted = [] if without is None else as_people(without, dim, "without")
        if options.mode == "tags":
            with self._lock, self._open_catalog().reading():
                ask = tags.TagQuery(self._catalog, snapshot, allowed, options, self.logistic, unwanted)
                return [ask.hits(people) for people in queries]
        if options.mode != "exact" and sets is None:
            raise InvalidInputError(
                f"this index has no set vectors: mode {options.mode!r} needs them, use 'exact'"
            )
        conditions = modes.Conditions(allowed, options.at_least, options.only, options.matching)
        given = sets is not None and sets.name == GIVEN
        exact: list[Query] = []
        people: list[Any] = queries
        if options.mode != "set" or not given or unwanted or options.of_elements:
            people = [as_people(p, dim) for p in queries]
            exact = [Query.of(p, unwanted, options.examples, self.logistic) for p in people]
        if options.mode == "exact":
            found = modes.exact(snapshot, exact, options.k, conditions, options.threads)
        else:
            of_sets = [self._set_query(p, options) for p in people]
            if options.mode == "set":
                found = modes.set_only(snapshot, of_sets, options.k, conditions, options.threads, exact)
            else:
                found = modes.fast(
                    snapshot, of_sets, exact, options.k, options.candidates, conditions, options.threads
                )
        return [hits_of(snapshot, scored) for scored in found]

    def _set_query(self, people: Any, options: Options) -> Query:
        """Return a query in the space of set vectors: through the head, or as given by the caller."""
        assert self.shape.sets is not None
        head = self.head
        if head is None:
            rows = as_people(people, self.shape.sets.dim)
            if options.aggregate_query:
                rows = [np.concatenate(rows).mean(axis=0, keepdims=True)]
        else:
            rows = aggregated(people, head, options.examples, options.aggregate_query)
        return Query.of(rows, [], options.examples, self.set_logistic)

    def _view(self, where: Mapping[str, Any] | None) -> tuple[Snapshot, modes.Allowed]:
        """Return the latest snapshot and the rows that satisfy the conditions, from one transaction."""
        for attempt in range(5):
            try:
                with self._lock, self._open_catalog().reading():
                    if self._snapshot is None or self._snapshot.generation != self._catalog.get("generation"):
                        self._load_settings()
                        known = {s.number: s for s in self._snapshot.segments} if self._snapshot else {}
                        self._snapshot = Snapshot(self._catalog, self.path, self.shape, known)
                    allowed = self._snapshot.allowed(self._catalog, where) if where else None
                    return self._snapshot, allowed
            except FileNotFoundError as error:  # a merge removed it since the catalogue was read
                if attempt == 4:
                    raise StorageError(f"{error.filename} is missing; run check() on the index") from error
        raise AssertionError("unreachable")

    def _fresh(self) -> Snapshot:
        return self._view(None)[0]

    def __len__(self) -> int:
        with self._lock:  # from the segments: counting half a million rows takes as long as a search
            row = self._open_catalog().db.execute("SELECT sum(items - deleted) FROM segments").fetchone()
            return int(row[0] or 0)

    def __contains__(self, item: object) -> bool:
        with self._lock:
            return isinstance(item, str) and bool(self._open_catalog().seqs_of([item]))

    def items(self) -> Iterator[Item]:
        """Yield all items in order of segments and insertion, a chunk of them in memory at a time."""
        snapshot = self._fresh()
        for s, segment in enumerate(snapshot.segments):
            rows = snapshot.alive(s)
            for at in range(0, len(rows), 1024):
                part = rows[at : at + 1024]
                texts = zip(
                    segment.ids_of(part),
                    segment.counts[part].tolist(),
                    segment.attributes_of(part),
                    strict=True,
                )
                for name, count, text in texts:
                    yield Item(name, count, json.loads(text) if text else {})

    def elements(self, item: str) -> NDArray[np.float32]:
        """Return the elements of an item as stored."""
        with self._lock:
            seq = self._open_catalog().seqs_of([item]).get(item)
        snapshot = self._fresh()
        for s, rows in snapshot.find(np.array([seq], np.int64)) if seq is not None else []:
            return snapshot.segments[s].elements_of(rows).astype(np.float32)
        raise InvalidInputError(f"id {item!r} is not in the index")

    def stats(self) -> Stats:
        """Return what the index holds and its size on disk, file by file."""
        with self._lock, self._open_catalog().reading():
            rows = self._catalog.db.execute(
                "SELECT count(*), sum(elements - deleted_elements), sum(deleted) FROM segments"
            ).fetchone()
            items, tag_count = self._catalog.count("items"), self._catalog.count("tag_names")
        files = sorted(p for p in self.path.rglob("*") if p.is_file())
        sizes = {str(p.relative_to(self.path)): p.stat().st_size for p in files if p.exists()}
        sets = self.shape.sets or SetSpec("none", 0, 0)
        return Stats(
            items=items, elements=int(rows[1] or 0), segments=rows[0], deleted=int(rows[2] or 0),
            bytes_by_file=sizes, dim=self.shape.dim, precision=self.shape.precision, set_vectors=sets.name,
            set_dim=sets.dim, set_bits=sets.bits, tags=tag_count, kernels=backend.level(),
        )  # fmt: skip

    def check(self) -> Report:
        """Verify every checksum, and that the catalogue and the segments agree; name what is damaged."""
        with self._lock:
            return check_index(self._open_catalog(), self.path, self.shape)

    # -- state ---------------------------------------------------------------------------------------

    def _open_catalog(self) -> Catalog:
        if self._catalog is None:
            raise InvalidInputError(f"the index {self.path} is closed: open it again with SetIndex.open")
        return self._catalog

    def _open_writer(self) -> Writer:
        self._open_catalog()
        if self._writer is None:
            raise InvalidInputError(
                f"{self.path} is open read-only: open it with SetIndex.open({str(self.path)!r})"
            )
        return self._writer
