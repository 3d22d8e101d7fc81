"""Loads detectors and descriptors by name, each once per process."""

from __future__ import annotations

import threading
from functools import cache

from setnet.errors import ModelError
from setnet.faces.describe.descriptor import Descriptor
from setnet.faces.detect.cascade import Cascade
from setnet.faces.detect.detector import Detector
from setnet.faces.detect.mtcnn import Mtcnn
from setnet.faces.detect.yunet import YuNet
from setnet.faces.registry.entry import ModelEntry
from setnet.faces.registry.models import model_entry, model_paths, registry_state
from setnet.faces.registry.sessions import open_session

_LOCK = threading.Lock()
_ROLES = {  # the files each kind of detector needs
    "cascade": ("yunet", "rnet", "onet"),
    "mtcnn": ("pnet", "rnet", "onet"),
    "yunet": ("model",),
}


def load_detector(name: str) -> Detector:
    """Return the detector of that name, loaded.

    Raises
    ------
    InvalidInputError, ModelError
        When no such detector is known, or its files are missing or wrong.
    """
    with _LOCK:
        return _detector(_entry(name, "detector", registry_state(name)))


def load_descriptor(name: str) -> Descriptor:
    """Return the descriptor model of that name, loaded; see `load_detector`."""
    with _LOCK:
        return _descriptor(_entry(name, "descriptor", registry_state(name)))


@cache
def _entry(name: str, kind: str, state: str) -> ModelEntry:
    return model_entry(name, kind)


@cache
def _detector(entry: ModelEntry) -> Detector:
    _one_opencv_thread()
    paths = model_paths(entry)
    needed = _ROLES[entry.runs]
    if set(paths) != set(needed):
        raise ModelError(
            f"model {entry.name!r} needs the files {sorted(needed)}, its entry has {sorted(paths)}"
        )
    # YuNet's weights come with a fixed size of image and large tensors; P-Net's have neither.
    first, *others = (open_session(paths[role], whole_photos=role in ("yunet", "model")) for role in needed)
    if entry.runs == "mtcnn":
        return Mtcnn(first, *others)
    return Cascade(YuNet(first), *others) if entry.runs == "cascade" else YuNet(first)


@cache
def _descriptor(entry: ModelEntry) -> Descriptor:
    _one_opencv_thread()
    (path,) = model_paths(entry).values()
    return Descriptor(entry, open_session(path))


def _one_opencv_thread() -> None:
    """Keep OpenCV to one thread: photos are spread over processes instead."""
    import cv2

    cv2.setNumThreads(1)
