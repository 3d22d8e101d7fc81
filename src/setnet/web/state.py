"""The state of a running server: library, pools, index runs, metrics."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from setnet.errors import SetNetError
from setnet.library import Library
from setnet.library.schema import Counts
from setnet.web.caches import Cursors, RankingCache, TimelineCache, UploadedFaces
from setnet.web.files import FolderBrowser
from setnet.web.image_pool import ImagePool
from setnet.web.limits import BoundedThreads, TokenRateLimit
from setnet.web.metrics import Metrics
from setnet.web.open_library import IndexJob, OpenLibrary
from setnet.web.problems import Problem
from setnet.web.settings import WebSettings

T = TypeVar("T")


class ServerState:
    """The library, the pools, the running index and the counters."""

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
        self.folders = FolderBrowser()
        self.timeline = TimelineCache()
        self.cursors = Cursors()
        self.rankings = RankingCache(settings.answer_lifetime, settings.max_answers)
        self.index_job = IndexJob(self.library)
        self.metrics = Metrics()
        self.wrong_tokens = TokenRateLimit(settings.wrong_tokens)
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

    def counts(self) -> Counts:
        """Return the library's counts."""
        return self.with_library(lambda library: library.photos.counts())

    def forget_everything(self) -> int:
        """Delete the library; refused while it is being written."""
        if self.index_job.is_running:
            raise Problem(409, "an index run is under way: stop it first")
        photos = self.library.forget_everything()
        self.faces.clear()
        self.rankings.clear()
        return photos

    def gauges(self) -> dict[str, float]:
        """Return the present values of the gauges of the metrics."""
        counts = self.counts()
        return {
            "face_queue": self.pool.waiting,
            "answers_kept": len(self.rankings),
            "answers_kept_bytes": self.rankings.nbytes,
            "faces_remembered": len(self.faces),
            "index_running": float(self.index_job.is_running),
            "library_faces": counts.faces,
            "library_people": counts.people,
            "library_photos": counts.photos,
            "search_queue": self.searching.waiting,
        }

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
