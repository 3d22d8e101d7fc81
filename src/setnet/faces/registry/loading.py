"""Loads detectors and descriptors by name, each once per process."""

from __future__ import annotations

import threading

from setnet.errors import ModelError
from setnet.faces.describe.descriptor import Descriptor, OnnxDescriptor
from setnet.faces.detect.detector import Detector
from setnet.faces.detect.mtcnn import Mtcnn
from setnet.faces.detect.yunet import YuNet
from setnet.faces.registry.entry import ModelEntry
from setnet.faces.registry.models import model_entry, model_paths, registry_state
from setnet.faces.registry.sessions import open_session

__all__ = ["load_descriptor", "load_detector"]

_LOCK = threading.Lock()
_ENTRIES: dict[tuple[str, str, str], ModelEntry] = {}
_DETECTORS: dict[ModelEntry, Detector] = {}
_DESCRIPTORS: dict[ModelEntry, Descriptor] = {}


def load_detector(name: str) -> Detector:
    """Return the detector of that name, loaded.

    Raises
    ------
    InvalidInputError, ModelError
        When no such detector is known, or its files are missing or wrong.
    """
    with _LOCK:
        entry = _entry(name, "detector")
        if entry not in _DETECTORS:
            _one_opencv_thread()
            _DETECTORS[entry] = _detector(entry)
        return _DETECTORS[entry]


def load_descriptor(name: str) -> Descriptor:
    """Return the descriptor model of that name, loaded; see `load_detector`."""
    with _LOCK:
        entry = _entry(name, "descriptor")
        if entry not in _DESCRIPTORS:
            _one_opencv_thread()
            (path,) = model_paths(entry).values()
            _DESCRIPTORS[entry] = OnnxDescriptor(entry, open_session(path))
        return _DESCRIPTORS[entry]


def _detector(entry: ModelEntry) -> Detector:
    paths = model_paths(entry)
    needed = {"mtcnn": {"pnet", "rnet", "onet"}, "yunet": {"model"}}[entry.runs]
    if set(paths) != needed:
        raise ModelError(
            f"model {entry.name!r} needs the files {sorted(needed)}, its entry has {sorted(paths)}"
        )
    if entry.runs == "yunet":
        return YuNet(paths["model"])
    return Mtcnn(*(open_session(paths[role]) for role in ("pnet", "rnet", "onet")))


def _entry(name: str, kind: str) -> ModelEntry:
    key = (name, kind, registry_state(name))
    if key not in _ENTRIES:
        _ENTRIES[key] = model_entry(name, kind)
    return _ENTRIES[key]


def _one_opencv_thread() -> None:
    """Keep OpenCV to one thread: photos are spread over processes instead."""
    import cv2

    cv2.setNumThreads(1)
