"""Which text each photo of the archive has: a row per photo, and one per file that could not be used."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from itertools import islice

from setnet.collect.run.manifest import Row
from setnet.collect.run.run_folder import CollectRun
from setnet.collect.sources.caption_files import CaptionFiles
from setnet.errors import SetNetError
from setnet.library import FolderScan
from setnet.sandbox import Message, Service, WorkerPool, unordered_map
from setnet.system import usable_cores

_AT_ONCE = 256


def caption_rows(run: CollectRun, done: Collection[str], workers: int | None = None) -> Iterator[Row]:
    """Yield a row per photo with its text: of files beside it and of data inside it.

    The file's own name counts where there is neither. Files of captions that cannot be used, photos that they
    list and that are not there, and second rows for one photo get rows too.
    """
    scan = FolderScan([os.fsencode(folder) for folder in run.settings.photos])
    files = CaptionFiles(run.settings.encoding)
    photos = (os.fsdecode(file.path) for file in scan.files())
    count = usable_cores() if workers is None else workers
    pool = WorkerPool(Service("setnet.collect.sources.embedded_captions"), count)
    try:
        while batch := list(islice(photos, _AT_ONCE)):
            left = [photo for photo in batch if photo not in done]
            found = dict(unordered_map(lambda photo: (photo, _embedded(pool, photo)), left, pool.capacity))
            for photo in batch:
                beside = files.caption_of(
                    photo
                )  # of all, so that what tables list is told from what is there
                if photo in found:
                    yield _row(photo, beside, found[photo])
            yield from _problems(files)
    finally:
        pool.close()
    files.close_folder()
    yield from _problems(files)
    for path, why in scan.unreadable:
        yield _problem(os.fsdecode(path), why)


def _row(photo: str, beside: str, inside: str) -> Row:
    texts = {"beside": beside, "inside": inside}
    parts = dict.fromkeys(text for text in texts.values() if text)
    origin = [name for name, text in texts.items() if text] or ["name"]
    if not parts:
        name = os.path.splitext(os.path.basename(photo))[0]
        parts[name.encode("utf-8", "replace").decode()] = None
    return {"photo": photo, "kept": True, "text": "\n".join(parts), "from": origin}


def _embedded(pool: WorkerPool, photo: str) -> str:
    try:
        reply = pool.call(Message("caption", {"path": photo}), lambda reply: reply.data("text"))
    except SetNetError:  # a hostile file: finding its faces will say so
        return ""
    return reply.decode("utf-8", "replace")


def _problems(files: CaptionFiles) -> Iterator[Row]:
    yield from (_problem(file, why) for file, why in files.problems)
    files.problems.clear()


def _problem(file: str, why: str) -> Row:
    return {"photo": f"{file}: {why}", "kept": False, "reason": "caption file", "detail": f"{file}: {why}"}
