"""One index run: compare the folders with the library, read what is new, store it in batches, report."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from setnet.addresses import is_address
from setnet.engine.manifest import Share, is_in_part
from setnet.faces.raw import RAW_NEEDS, can_read_raw
from setnet.library.folder_scan import Exclusion, FolderScan, FoundFile, is_raw_name, missing_roots
from setnet.library.paths import as_path, is_below, is_gone
from setnet.library.photo_catalog import KnownFile
from setnet.library.photo_reader import PhotoReader, PhotoResult, PhotoTask, taken_date
from setnet.library.photo_writer import PhotoWriter
from setnet.system import usable_cores
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.library.collection import CollectedPhotos, CollectionPart
    from setnet.sandbox import Limits

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """A running index run: `done` of `total` files read, unchanged ones left out; `minutes` are of videos.

    `rate` is that of the last minute, in files per second; 0 until there is something to go by.
    """

    stage: str
    done: int
    total: int
    unchanged: int
    faces: int
    failed: int
    seconds: float
    minutes: float = 0.0
    rate: float = 0.0

    @property
    def seconds_left(self) -> float | None:
        """The expected rest of the run, once there is something to go by."""
        if self.done >= self.total:
            return 0.0
        return (self.total - self.done) / self.rate if self.rate > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the progress as values that JSON can hold."""
        left = self.seconds_left
        return asdict(self) | {
            "seconds": round(self.seconds, 2),
            "rate": round(self.rate, 2),
            "minutes": round(self.minutes, 2),
            "seconds_left": None if left is None else round(left, 1),
        }


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The end of an index run; paths are absolute.

    `failed` are files that could not be read, or not to their end.
    `skipped` are files that nothing installed can read. `prune_refused`: photos whose files are gone were not
    removed, because they are more than a tenth and nobody agreed. `excluded` are the patterns in use. `lost`
    are examples of people that another descriptor sees nowhere: the person, and the photo they came from.
    """

    scanned: int
    unchanged: int
    added: int = 0
    changed: int = 0
    moved: int = 0
    copied: int = 0
    removed: int = 0
    faces: int = 0
    vanished: tuple[Path, ...] = ()
    failed: tuple[tuple[Path, str], ...] = ()
    unreadable: tuple[tuple[Path, str], ...] = ()
    interrupted: bool = False
    seconds: float = 0.0
    workers: int = 0
    shots: int = 0
    minutes: float = 0.0
    skipped: tuple[tuple[Path, str], ...] = ()
    prune_refused: bool = False
    excluded: tuple[str, ...] = ()
    lost: tuple[tuple[str, Path | None], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every file could be read, no example was lost and the run came to its end."""
        return not (self.failed or self.unreadable or self.lost or self.interrupted)

    @property
    def has_changed(self) -> bool:
        """Whether photos came, went or changed."""
        return any((self.added, self.changed, self.moved, self.copied, self.removed))

    @property
    def summary(self) -> str:
        """The run in one sentence."""
        new, seconds = self.added + self.changed, max(self.seconds, 1e-3)
        rate = f"{new / seconds:,.1f} photos/s" if new else f"{self.scanned / seconds:,.0f} files/s"
        others = ("changed", "moved", "copied", "unchanged", "removed")
        parts = [f"{pluralise(self.scanned, 'photo')} seen", f"{self.added:,} new"]
        parts += [f"{getattr(self, name):,} {name}" for name in others if getattr(self, name)]
        parts += [f"{len(self.skipped):,} skipped"] if self.skipped else []
        if self.shots:
            rate += f"; {pluralise(self.shots, 'shot')} in {self.minutes:.1f} minutes of video"
        return f"{', '.join(parts)}; {pluralise(self.faces, 'face')} found in {self.seconds:.1f} s, {rate}"

    def to_dict(self, path_text: Callable[[Path], str] = str, max_paths: int | None = None) -> dict[str, Any]:
        """Return the report as values that JSON can hold, with at most `max_paths` paths in each list."""
        found = asdict(self) | {"vanished": [path_text(path) for path in self.vanished[:max_paths]]}
        del found["lost"]  # of another kind of run
        for name in ("failed", "unreadable", "skipped"):
            what = "folder" if name == "unreadable" else "photo"
            found[name] = [{what: path_text(p), "reason": why} for p, why in getattr(self, name)[:max_paths]]
        names = ("vanished", "failed", "unreadable", "skipped")
        return found | {f"{name}_count": len(getattr(self, name)) for name in names}


BATCH_PHOTOS = 256
BATCH_SECONDS = 4.0
GROUPED_PHOTOS = 500  # people appear after so many, while the run goes on
_GROUPING_SHARE = 0.1  # of the time of a run, at most, before its end
_PACE_SECONDS = 60.0  # for which the rate is that of a run

Progress = Callable[[IndexProgress], None]
AgreeToPrune = Callable[[int, int], bool]
Named = list[tuple[bytes, str]]  # paths, each with what is to be said of it


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is done; `Library.index` says what each means. Of files, those of a part are looked at."""

    workers: int | None = None
    prune: bool | AgreeToPrune = False
    retry: bool = False
    progress: Progress | None = None
    should_stop: Callable[[], bool] | None = None
    limits: Limits | None = None
    part: Share | None = None

    def workers_for(self, files: int) -> int:
        """Return how many processes so many files are read by."""
        return min(usable_cores() if self.workers is None else self.workers, files)

    def check_stopped(self) -> None:
        """End the run, as Ctrl-C does, where the caller asks for it."""
        if self.should_stop is not None and self.should_stop():
            raise KeyboardInterrupt

    def agree_to_prune(self, gone: int, known: int) -> bool:
        """Return whether so many photos may be removed."""
        return self.prune if isinstance(self.prune, bool) else self.prune(gone, known)


def store_in_batches(
    results: Iterable[T],
    batch: Sized,
    take: Callable[[T], None],
    flush: Callable[[], None],
    options: RunOptions,
) -> None:
    """Take results as they come and store them now and then; what was taken is kept when a run is stopped.

    `take` adds what is to be stored to the batch, and `flush` stores it.
    """
    since = monotonic()
    try:
        for result in results:
            take(result)
            if len(batch) >= BATCH_PHOTOS or monotonic() - since > BATCH_SECONDS:
                flush()
                since = monotonic()
            options.check_stopped()
    finally:
        flush()
    options.check_stopped()


class Pace:
    """How many files a run reads in a second, by what it read in the last minute.

    The first file does not count: it waits until processes have started and models are loaded.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, done: int) -> float:
        """Return the rate, now that so many files are done; 0 while there is nothing to go by."""
        now = monotonic()
        if done:
            self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[1][0] > _PACE_SECONDS:
            self._seen.popleft()
        if not self._seen or done <= self._seen[0][1]:
            return 0.0
        since, before = self._seen[0]
        return (done - before) / max(now - since, 1e-6)


class IndexRun:
    """The state of one run over some folders, or over what a collection has of them.

    What is found goes into a library, whose index is open for writing, or into a part of a collection.
    """

    def __init__(
        self,
        writer: PhotoWriter | CollectionPart,
        settings: FaceSettings,
        options: RunOptions,
        excluded: Sequence[str] = (),
        collected: CollectedPhotos | None = None,
        regroup: Callable[..., object] | None = None,
    ) -> None:
        self._writer, self._settings, self._options = writer, settings, options
        self._catalog = writer.catalog
        self._excluded, self._collected, self._regroup = excluded, collected, regroup
        self._counts: Counter[str] = Counter()
        self._known: dict[bytes, KnownFile] = {}
        self._by_size: dict[int, tuple[bytes, ...]] = {}
        self._seen: set[bytes] = set()
        self._moved: set[int] = set()
        self._batch: list[PhotoResult] = []
        self._touched: list[tuple[int, PhotoResult]] = []
        self._failed: Named = []
        self._skipped: Named = []
        self._scan_seconds = 0.0
        self._start, self._pace = perf_counter(), Pace()
        self._refused = False
        self._ungrouped, self._grouping_seconds = 0, 0.0
        self._workers = 0
        self._reader: PhotoReader | CollectedPhotos | None = None

    def run(self, roots: Sequence[bytes]) -> IndexReport:
        """Bring what is stored up to date with the folders `roots`."""
        self._writer.recover()
        self._known = self._catalog.known_files()
        if self._collected is not None:
            scan: FolderScan | CollectedPhotos = self._collected
        else:
            self._by_size = _contents_by_size(self._known.values())
            missing = missing_roots(roots, self._catalog.folders(), self._known)
            there = [root for root in roots if root not in dict(missing)]
            scan = FolderScan(there, self._writer.left_out, Exclusion(self._excluded), videos=True)
            scan.unreadable += missing
        work: list[PhotoTask] = []
        vanished: list[bytes] = []
        removed, interrupted = 0, False
        try:
            work = self._work(scan)
            vanished = self._find_vanished(roots, scan)
            self._scan_seconds = perf_counter() - self._start
            self._read(work)
        except KeyboardInterrupt:
            interrupted = True
        vanished = [path for path in vanished if self._moved.isdisjoint(self._known[path].ids)]
        may_prune = False
        if vanished and not interrupted:
            may_prune = self._options.agree_to_prune(len(vanished), len(self._known))
            self._refused = not may_prune and not isinstance(self._options.prune, bool)
        if may_prune:
            self._writer.remove([photo for path in vanished for photo in self._known[path].ids])
            removed, vanished = len(vanished), []
        return self._report(scan, vanished, removed, interrupted)

    def _work(self, scan: FolderScan | CollectedPhotos) -> list[PhotoTask]:
        work: list[tuple[tuple[float, int], PhotoTask]] = []  # with times: the newest are read first
        reads_raw = self._collected is not None or can_read_raw()
        for file in scan.files():
            self._options.check_stopped()
            if self._options.part is not None and not is_in_part(file.path, self._options.part):
                continue
            self._seen.add(file.path)
            if len(self._seen) % 5000 == 0:
                self.show("looking for photos", self._counts["done"], len(self._seen))
            task = self._task(file)
            if task is not None and not reads_raw and is_raw_name(os.path.basename(file.path)):
                self._skipped.append((file.path, RAW_NEEDS))
            elif task is not None:
                taken = taken_date(file.path, None, file.mtime_ns)[0]
                work.append(((taken or 0.0, file.mtime_ns), task))
            else:
                self._counts["unchanged"] += 1
        # Photos that a repair left to be read again, whichever folders this run reads.
        unread = [path for path, file in self._known.items() if file.state == "unread"]
        for path in unread:
            if path not in self._seen and (is_address(path) or os.path.isfile(path)):
                self._seen.add(path)
                work.append(((0.0, 0), PhotoTask(path)))
        return [task for _, task in sorted(work, key=itemgetter(0), reverse=True)]

    def _task(self, file: FoundFile) -> PhotoTask | None:
        known = self._known.get(file.path)
        settled = ("ready",) if self._options.retry else ("ready", "failed")
        if (
            known is not None
            and known.state in settled
            and (known.size, known.mtime_ns) == (file.size, file.mtime_ns)
        ):
            return None
        return PhotoTask(file.path, self._by_size.get(file.size, ()))

    def _read(self, work: Sequence[PhotoTask]) -> None:
        if not work:
            return
        redo: list[PhotoTask] = []
        self._workers = self._options.workers_for(len(work))

        def poll() -> bool:  # also while a long video is being watched
            self.show("finding faces", self._counts["done"], len(work))
            return self._options.should_stop is not None and self._options.should_stop()

        def take(result: PhotoResult) -> None:
            if self._ungrouped >= GROUPED_PHOTOS:
                self._group()
            self._take(result, redo)
            self.show("finding faces", self._counts["done"], len(work))

        with (
            nullcontext(self._collected)
            if self._collected
            else PhotoReader(self._settings, self._workers, self._options.limits) as reader
        ):
            self._reader = reader
            results = self._results(reader, work, redo, poll)
            store_in_batches(results, self._batch, take, self._flush, self._options)

    def _results(
        self,
        reader: PhotoReader | CollectedPhotos,
        work: Sequence[PhotoTask],
        redo: list[PhotoTask],
        poll: Callable[[], bool],
    ) -> Iterator[PhotoResult]:
        """Yield the results of `work`, then of what was added to `redo` meanwhile."""
        while work:
            yield from reader.results(work, poll)
            self._options.check_stopped()
            work = list(redo)
            redo.clear()

    def _group(self) -> None:
        """Group the faces so far, unless that has taken much of the run's time already."""
        begun = perf_counter()
        if self._regroup is None or self._grouping_seconds > _GROUPING_SHARE * (begun - self._start):
            return
        self._regroup(progress=self.show_grouping)
        self._ungrouped = 0
        self._grouping_seconds += perf_counter() - begun

    def _flush(self) -> None:
        self._ungrouped += len(self._batch)
        self._writer.store(self._batch)
        self._batch.clear()
        self._writer.touch(self._touched)
        self._touched.clear()

    def _take(self, result: PhotoResult, redo: list[PhotoTask]) -> None:
        if result.is_known:
            self._take_known(result, redo)
            return
        self._counts["done"] += 1
        self._batch += result.shots or [result]
        if (problem := result.reason or result.note) is not None:
            self._failed.append((result.path, problem))
        if result.reason is not None:
            return
        self._counts["faces"] += len(result.faces) + sum(len(shot.faces) for shot in result.shots)
        self._counts["shots"] += len(result.shots)
        self._counts["changed" if result.path in self._known else "added"] += 1

    def _take_known(self, result: PhotoResult, redo: list[PhotoTask]) -> None:
        """Store a file whose content the library has: touched, moved, or a second copy."""
        twins = self._catalog.same_content(result.hash)
        if not twins:  # replaced since this run began: find its faces after all
            redo.append(PhotoTask(result.path))
            return
        self._counts["done"] += 1
        here = [ids for ids, path in twins if path == result.path]
        gone = [
            ids
            for ids, path in twins
            if self._moved.isdisjoint(ids) and path not in self._seen and is_gone(path)
        ]
        if here:
            self._touched += [(i, result) for i in here[0]]
            self._counts["unchanged"] += 1
        elif gone and result.path not in self._known:
            self._moved.update(gone[0])
            self._batch += [replace(self._writer.copy_faces(i, result), moved_from=i) for i in gone[0]]
            self._counts["moved"] += 1
        else:
            self._batch += [self._writer.copy_faces(i, result) for i in twins[0][0]]
            self._counts["copied"] += 1

    def _find_vanished(self, roots: Sequence[bytes], scan: FolderScan | CollectedPhotos) -> list[bytes]:
        """Return known photos under `roots` that are gone; an unreadable folder or link proves nothing."""
        unsure = [path for path, _ in (*scan.unreadable, *scan.skipped)]
        return [
            path
            for path in self._known
            if path not in self._seen
            and any(is_below(path, root) for root in roots)
            and not any(is_below(path, folder) for folder in unsure)
        ]

    @property
    def _minutes(self) -> float:
        return 0.0 if self._reader is None else self._reader.video_seconds / 60

    def show(self, stage: str, done: int, total: int) -> None:
        """Report how far the run is."""
        if self._options.progress is None:
            return
        is_reading = stage == "finding faces"
        self._options.progress(
            IndexProgress(
                stage=stage,
                done=done,
                total=total,
                unchanged=self._counts["unchanged"],
                faces=self._counts["faces"],
                failed=len(self._failed),
                seconds=perf_counter() - self._start - self._scan_seconds if is_reading else 0.0,
                minutes=self._minutes if is_reading else 0.0,
                rate=self._pace.rate(done) if is_reading else 0.0,
            )
        )

    def show_grouping(self, _: str, done: int, total: int) -> None:
        """Report how far the grouping is that follows the run."""
        self.show("grouping faces", done, total)

    def _report(
        self,
        scan: FolderScan | CollectedPhotos,
        vanished: Sequence[bytes],
        removed: int,
        interrupted: bool,
    ) -> IndexReport:
        counts = self._counts
        return IndexReport(
            scanned=len(self._seen),
            unchanged=counts["unchanged"],
            added=counts["added"],
            changed=counts["changed"],
            moved=counts["moved"],
            copied=counts["copied"],
            removed=removed,
            faces=counts["faces"],
            vanished=tuple(map(as_path, vanished)),
            failed=_with_paths(self._failed),
            unreadable=_with_paths(scan.unreadable),
            interrupted=interrupted,
            seconds=perf_counter() - self._start,
            workers=self._workers,
            shots=counts["shots"],
            minutes=self._minutes,
            skipped=_with_paths(scan.skipped + self._skipped),
            prune_refused=self._refused,
            excluded=tuple(self._excluded),
        )


def _with_paths(found: Named) -> tuple[tuple[Path, str], ...]:
    return tuple((as_path(path), text) for path, text in found)


def _contents_by_size(files: Iterable[KnownFile]) -> dict[int, tuple[bytes, ...]]:
    """Return the contents of finished photos by size: only a file of that size can be one of them."""
    found: dict[int, list[bytes]] = {}
    for file in files:
        if file.hash is not None and file.state == "ready":
            found.setdefault(file.size, []).append(file.hash)
    return {size: tuple(contents) for size, contents in found.items()}
