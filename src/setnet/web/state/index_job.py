"""Index runs of the server: one at a time, in a background thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from setnet.errors import SetNetError
from setnet.library import AgreeToPrune, GroupingReport, IndexProgress, IndexReport, display_path, is_few
from setnet.web.server.problems import Problem
from setnet.web.state.open_library import OpenLibrary

_LOG = logging.getLogger("setnet.web")
_SHOWN_FAILURES = 100


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of the latest run, which indexed or only grouped; `version` grows with every change."""

    version: int = 0
    state: str = "idle"
    folders: tuple[str, ...] = ()
    started: float | None = None
    progress: IndexProgress | None = None
    report: IndexReport | None = None
    grouping: GroupingReport | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the state as values that JSON can hold."""
        return {
            "state": self.state,
            "folders": list(self.folders),
            "started": self.started,
            "progress": None if self.progress is None else self.progress.to_dict(),
            "report": None if self.report is None else self.report.to_dict(display_path, _SHOWN_FAILURES),
            "grouping": None if self.grouping is None else self.grouping.to_dict(),
            "error": self.error,
        }


class IndexJob:
    """Starts, watches and stops index runs."""

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

    def start(
        self, folders: Sequence[str], *, prune: bool = False, prune_many: bool = False, retry: bool = False
    ) -> JobState:
        """Begin a run; a second one beside it is refused.

        With `prune` photos whose files are gone are removed, more than a tenth only with `prune_many`.
        """
        agreed = prune if prune_many or not prune else is_few
        return self._start(folders, lambda: self._run(list(folders), agreed, retry))

    def start_grouping(self, *, anew: bool = False) -> JobState:
        """Begin to group faces; refused while a run is under way."""
        return self._start((), lambda: self._group(anew))

    def _start(self, folders: Sequence[str], run: Callable[[], None]) -> JobState:
        with self._lock:
            if self.is_running:
                raise Problem(409, "an index run is under way: wait for its end, or stop it first")
            self._stop.clear()
            self.state = JobState(self.state.version, folders=tuple(folders), started=time.time())
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

    def _group(self, anew: bool) -> None:
        def tell(stage: str, done: int, total: int) -> None:
            self._report(IndexProgress("grouping faces", done, total, 0, 0, 0, 0.0))

        with self._failures(), self._library.reading() as library:
            report = library.discover(anew=anew, progress=tell, should_stop=self._stop.is_set)
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
