"""Shots of videos as sets of frames: descriptors of whole pictures, labelled by video and shot.

python -m studies.frame_sets FILMS --descriptor NAME --out frames.npz
"""

from __future__ import annotations

import argparse
import os
from bisect import bisect_right
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, VideoError
from setnet.faces import load_descriptor
from setnet.library import write_descriptor_file
from setnet.library.folder_scan import FolderScan, is_video_name
from setnet.library.paths import existing_paths
from setnet.video.frames import Frame, watch_frames
from setnet.video.shots import Signature, find_cuts, may_be_cut, signature


def frame_sets(
    path: str, descriptor: str, every: float
) -> tuple[NDArray[np.float32], list[float], list[int]]:
    """Return descriptors of pictures of a video, their seconds, and the shot that each is of."""
    model = load_descriptor(descriptor)
    signatures: list[Signature] = []
    times: list[float] = []
    vectors: list[NDArray[np.float32]] = []

    def has_changed(a: Frame, b: Frame) -> bool:
        return may_be_cut(signature(a), signature(b))

    for frame in watch_frames(path, 0.0, has_changed):
        signatures.append(signature(frame))
        is_cut = len(signatures) > 1 and may_be_cut(signatures[-2], signatures[-1])
        if not times or is_cut or frame.time - times[-1] >= every:
            times.append(frame.time)
            vectors.append(model.describe([middle_square(frame.pixels, model.size)]))
    if not times:
        raise VideoError("holds no picture that can be decoded")
    begins = [cut.begin for cut in find_cuts(signatures)]
    return np.concatenate(vectors), times, [bisect_right(begins, time) for time in times]


def middle_square(pixels: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Return the middle of a picture as a square of so many pixels."""
    side = min(pixels.shape[:2])
    top, left = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
    part = np.ascontiguousarray(pixels[top : top + side, left : left + side])
    return np.asarray(cv2.resize(part, (size, size), interpolation=cv2.INTER_AREA), np.uint8)


def describe_frames(folders: list[Path], out: Path, descriptor: str, every: float = 1.0) -> list[str]:
    """Write `descriptors`, `labels` (video and shot), `paths` and `times`; return why videos were left out."""
    files = [os.fsdecode(file.path) for file in FolderScan(existing_paths(folders), videos=True).files()]
    vectors, labels, paths, times, failed = [], [], [], [], []
    for path in files:
        if is_video_name(os.fsencode(os.path.basename(path))):
            try:
                found, seconds, shots = frame_sets(path, descriptor, every)
            except VideoError as error:
                failed.append(f"{path}: {error}")
                continue
            vectors.append(found)
            labels += [f"{path}#{shot}" for shot in shots]
            paths += [path] * len(shots)
            times += seconds
    if not vectors:
        raise InvalidInputError(f"no video that can be read in {', '.join(map(str, folders))}")
    stored = {"paths": np.array(paths), "times": np.array(times)}
    write_descriptor_file(out, np.concatenate(vectors), labels, **stored)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser("python -m studies.frame_sets", description="Describe frames of videos.")
    parser.add_argument("folders", type=Path, nargs="+", help="folders of videos, or videos")
    parser.add_argument("--out", type=Path, required=True, help="the descriptor file to write")
    parser.add_argument("--descriptor", default="sface", help="a model of `setnet models`")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two pictures")
    options = parser.parse_args()
    for reason in describe_frames(options.folders, options.out, options.descriptor, options.every):
        print(reason)


if __name__ == "__main__":
    main()
