"""Descriptors of frames of videos as a file, labelled by shot: sets of frames instead of sets of faces."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, SetNetError, WorkerError
from setnet.library.indexing.folder_scan import FolderScan, is_video_name
from setnet.library.store.descriptor_file import refuse_place, write_descriptor_file
from setnet.library.store.paths import existing, shown
from setnet.sandbox import Limits, Message, Service, Tasks, WorkerPool

_SECONDS = 3600.0  # for one video


def tasks(options: Mapping[str, Any]) -> Tasks:
    """Return the task of a worker process: to describe the frames of a video."""
    from setnet.video import frame_sets

    def frames(task: Message) -> Message:
        found = frame_sets(task.fields["path"], options["descriptor"], options["every"])
        arrays: dict[str, NDArray[Any]] = {
            "descriptors": found.descriptors,
            "times": found.times,
            "shots": found.shots,
        }
        return Message("done", {}, arrays)

    return {"frames": frames}


def describe_frames(
    videos: Sequence[str | os.PathLike[str]],
    out: Path,
    descriptor: str,
    *,
    every: float = 1.0,
    workers: int = 1,
) -> tuple[int, int, list[tuple[str, str]]]:
    """Write `descriptors`, `labels` (video and shot), `paths` and `times` of frames of videos.

    Returns the numbers of frames and shots, and the videos that could not be read with the reasons.
    """
    from setnet.faces import model_entry

    refuse_place(out)
    roots = existing(videos)
    found = [file.path for file in FolderScan(roots, videos=True).files()]
    files = [path for path in found if is_video_name(os.path.basename(path))]
    if not files:
        raise InvalidInputError(f"no video in {', '.join(map(shown, roots))}")
    dim = model_entry(descriptor, "descriptor").dim or 0
    service = Service(__name__, {"descriptor": descriptor, "every": every})
    vectors, labels, paths, times, failed = [], [], [], [], []
    pool = WorkerPool(service, workers, Limits(seconds=_SECONDS))
    try:
        for path in files:
            try:
                reply = pool.call(Message("frames", {"path": os.fsdecode(path)}), lambda reply: reply)
                seconds = reply.array("times", np.float64, None)
                shots = reply.array("shots", np.int64, len(seconds))
                vectors.append(reply.array("descriptors", np.float32, len(seconds), dim))
            except (SetNetError, WorkerError) as error:
                failed.append((shown(path), str(error)))
                continue
            labels += [f"{shown(path)}#{shot}" for shot in shots.tolist()]
            paths += [shown(path)] * len(seconds)
            times += seconds.tolist()
    finally:
        pool.close()
    if not vectors:
        raise InvalidInputError(f"no video could be read: {failed[0][0]}: {failed[0][1]}")
    model = np.array(model_entry(descriptor, "descriptor").identity)
    stored = {"paths": np.array(paths), "times": np.array(times), "model": model}
    write_descriptor_file(out, np.concatenate(vectors), labels, **stored)
    return len(labels), len(set(labels)), failed
