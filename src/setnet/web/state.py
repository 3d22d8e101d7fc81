"""The state of a running server: the library, the run that indexes it, and the threads that use it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from setnet.errors import SetNetError
from setnet.library import GroupingReport, IndexProgress, IndexReport, Library
from setnet.library.creation import library_exists
from setnet.library.folder_scan import is_few
from setnet.library.index_run import AgreeToPrune
from setnet.library.paths import display_path
from setnet.web.caches import RankingCache, TimelineCache, UploadedFaces
from setnet.web.guard import Sessions, TokenRateLimit
from setnet.web.pools import BoundedThreads, ImagePool
from setnet.web.problems import Problem
from setnet.web.settings import WebSettings

T = TypeVar("T")
_LOG = logging.getLogger("setnet.web")
_SHOWN_FAILURES = 100
_GONE = (
    "is gone, deleted or moved while this server runs: put it back, or start the server again to begin an "
    "empty one"
)
_REPLACED = (
    "was replaced by one with other face settings, or described again by another model, while this server "
    "runs: start the server again"
)


class OpenLibrary:
    """A library that is created at the start if there is none, so that the page can start from nothing.

    A library that disappears later (deleted, moved, on a disk that was unmounted) is not created again:
    requests get 503 until it is back.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = Library.open_or_create(path)
        self._library.set_index  # noqa: B018 - opened here, before many threads need it at once
        self._settings = self._library.settings  # the process that finds faces goes on with these
        self._changed = threading.Condition()
        self._readers = 0
        self._replacing = False

    @contextmanager
    def reading(self) -> Iterator[Library]:
        """Yield the library; it stays open until the block ends."""
        self._follow()
        with self._changed:
            self._changed.wait_for(lambda: not self._replacing)
            self._readers += 1
            library = self._library
        try:
            yield library
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    def forget_everything(self) -> int:
        """Delete the library from disk, once nobody reads it, and begin an empty one."""
        self._follow()
        with self._alone():
            try:
                return self._library.forget_everything()
            finally:
                self._open_successor(create=True)

    def _follow(self) -> None:
        """Open the library that took the place of the one that was open; raise when there is none."""
        if not self._library._database.is_gone:
            return
        if not library_exists(self.path):
            raise self._unusable(_GONE)
        with self._alone():
            self._open_successor(create=False)

    def _unusable(self, why: str) -> Problem:
        return Problem(503, f"the library {display_path(self.path)} {why}", {"Retry-After": "10"})

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Run a block while nobody reads the library and nobody can begin to."""
        with self._changed:
            self._changed.wait_for(lambda: not self._replacing)
            self._replacing = True
            self._changed.wait_for(lambda: self._readers == 0)
        try:
            yield
        finally:
            with self._changed:
                self._replacing = False
                self._changed.notify_all()

    def _open_successor(self, *, create: bool) -> None:
        """Open the library that is there now, or `create` an empty one."""
        if library_exists(self.path):
            library = Library.open(self.path)
            if library.settings != self._settings:
                library.close()
                raise self._unusable(_REPLACED)
        elif create:
            library = Library.create(self.path, self._settings, beside_others=True)
        else:
            raise self._unusable(_GONE)
        library.set_index  # noqa: B018 - opened here, before many threads need it at once
        self._library.close()
        self._library = library

    def close(self) -> None:
        """Close the library."""
        self._library.close()


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of the latest run, which indexed or only grouped; `version` grows with every change."""

    version: int = 0
    state: str = "idle"
    folders: tuple[str, ...] = ()
    started: datetime | None = None
    progress: IndexProgress | None = None
    report: IndexReport | None = None
    grouping: GroupingReport | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the state as values that JSON can hold."""
        return {
            "state": self.state,
            "folders": list(self.folders),
            "started": self.started and self.started.isoformat(),
            "progress": None if self.progress is None else self.progress.to_dict(),
            "report": None if self.report is None else self.report.to_dict(display_path, _SHOWN_FAILURES),
            "grouping": None if self.grouping is None else asdict(self.grouping),
            "error": self.error,
        }


class IndexJob:
    """Starts, watches and stops index runs: one at a time, in a background thread."""

    def __init__(self, library: OpenLibrary) -> None:
        self._library = library
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="setnet-index")
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._running: Future[None] | None = None
        self.state = JobState()

    @property
    def is_running(self) -> bool:
        """Whether a run is under way; as in `state`, so that the next may start once it is done."""
        return self.state.state in ("running", "stopping")

    def check_idle(self, remedy: str) -> None:
        """Raise while a run is under way."""
        if self.is_running:
            raise Problem(409, f"an index run is under way: {remedy}", code="run_under_way")

    def start(self, folders: Sequence[str], prune: bool, prune_many: bool, retry: bool) -> JobState:
        """Begin a run; a second one beside it is refused.

        With `prune` photos whose files are gone are removed, more than a tenth only with `prune_many`.
        """
        agreed = prune if prune_many or not prune else is_few
        return self._start(folders, lambda: self._run(list(folders), agreed, retry))

    def start_grouping(self, *, again: bool = False) -> JobState:
        """Begin to group faces; refused while a run is under way."""
        return self._start((), lambda: self._group(again))

    def _start(self, folders: Sequence[str], run: Callable[[], None]) -> JobState:
        with self._lock:
            self.check_idle("wait for its end, or stop it first")
            self._stop.clear()
            self.state = JobState(self.state.version, folders=tuple(folders), started=datetime.now(UTC))
            self._change(state="running")
            self._running = self._thread.submit(run)
            return self.state

    def stop(self) -> JobState:
        """Ask the run to end; what it has found is kept, the next run goes on from there."""
        with self._lock:
            if self.is_running:
                self._stop.set()
                self._change(state="stopping")
            return self.state

    def close(self, patience: float = 30.0) -> None:
        """Stop the run and wait until the library is closed by it."""
        self._stop.set()
        if self._running is not None:
            try:
                self._running.result(patience)
            except TimeoutError:
                _LOG.warning("the index run did not end in time; the next one repairs what it left")
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _run(self, folders: list[str], prune: bool | AgreeToPrune, retry: bool) -> None:
        with self._failures(), self._library.reading() as library:
            report = library.index(
                folders or None,
                prune=prune,
                retry=retry,
                progress=self._report,
                should_stop=self._stop.is_set,
            )
            self._change(state="stopped" if report.interrupted else "done", report=report)

    def _group(self, again: bool) -> None:
        def tell(stage: str, done: int, total: int) -> None:
            self._report(IndexProgress("grouping faces", done, total, 0, 0, 0, 0.0))

        with self._failures(), self._library.reading() as library:
            report = library.groups.update(again=again, progress=tell, should_stop=self._stop.is_set)
            self._change(state="stopped" if report.interrupted else "done", grouping=report)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Keep why a run failed: a short error for the user; the log has the rest."""
        try:
            yield
        except SetNetError as error:
            self._change(state="failed", error=str(error))
        except Exception as error:
            _LOG.exception("the index run failed")
            self._change(state="failed", error=f"unexpected {type(error).__name__}")

    def _report(self, progress: IndexProgress) -> None:
        self._change(progress=progress)

    def _change(self, **changes: Any) -> None:
        with self._lock:  # the run and a request to stop it must not undo each other's changes
            self.state = replace(self.state, version=self.state.version + 1, **changes)


class ServerState:
    """The library, the pools, the running index and the caches."""

    def __init__(self, library: Path, settings: WebSettings) -> None:
        self.settings = settings
        self.library = OpenLibrary(library)
        with self.library.reading() as opened:
            faces, self.dim = opened.settings, opened.dim
        self.pool = ImagePool(
            "face finding",
            replace(faces, max_pixels=min(faces.max_pixels, settings.max_pixels)),
            workers=settings.face_workers,
            queue=settings.face_queue,
            seconds=settings.face_seconds,
            finds_faces=True,
        )
        self.faces = UploadedFaces(settings.face_lifetime)
        self.timeline = TimelineCache()
        self.rankings = RankingCache(settings.answer_lifetime, settings.max_answers)
        self.index_job = IndexJob(self.library)
        self.wrong_tokens = TokenRateLimit(settings.wrong_tokens)
        self.sessions = Sessions()
        self.searching = BoundedThreads("searching", settings.search_threads, settings.search_queue)
        self.reading = BoundedThreads("reading", 4, 256)
        self.parsing = BoundedThreads("parsing", 2, 64)
        self.drawing = ImagePool(
            "thumbnail making", faces, workers=2, queue=512, seconds=settings.draw_seconds
        )
        self.writing = BoundedThreads("writing", 1, 64)
        self.stopping = threading.Event()
        self._warming: asyncio.Task[None] | None = None

    async def read(self, call: Callable[[Library], T]) -> T:
        """Return what `call` returns for the library, from a reading thread."""
        return await self.reading.run(self.with_library, call)

    async def write(self, call: Callable[[Library], T]) -> T:
        """Return what `call` returns for the library, from the one writing thread."""
        return await self.writing.run(self.with_library, call)

    def with_library(self, call: Callable[[Library], T]) -> T:
        """Return what `call` returns for the library, which stays open meanwhile."""
        with self.library.reading() as library:
            return call(library)

    def forget_everything(self) -> int:
        """Delete the library; refused while it is being written."""
        self.index_job.check_idle("stop it first")
        photos = self.library.forget_everything()
        self.faces.clear()
        self.rankings.clear()
        return photos

    def begin(self) -> None:
        """Start the processes that open images, so that the first photo need not wait for them."""
        self._warming = asyncio.get_running_loop().create_task(self._warm_up())

    async def _warm_up(self) -> None:
        with suppress(SetNetError, Problem, OSError):
            await self.drawing.warm_up()
            await self.pool.warm_up()

    async def close(self) -> None:
        """End everything: searches are finished, an index run is stopped, nothing is left half done."""
        self.stopping.set()
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        # Threads before what they use.
        users = (self.pool, self.searching, self.reading, self.parsing, self.drawing, self.writing)
        self.index_job.close()
        for threads in users:
            threads.close()
        self.library.close()
