"""Models loaded to run: one session per file and process."""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from setnet.durable import replace_file
from setnet.errors import ModelError, choice_error
from setnet.faces.cascade import Cascade
from setnet.faces.descriptor import Descriptor
from setnet.faces.detector import Detector
from setnet.faces.mtcnn import Mtcnn
from setnet.faces.onnx_graph import ADAPTATION, adapt_model
from setnet.faces.registry import (
    ModelEntry,
    ModelFile,
    check_hash,
    find_file,
    hash_file,
    model_entry,
    registry_cache,
    registry_state,
)
from setnet.faces.yunet import YuNet

_LOCK = threading.Lock()
_CPU = "CPUExecutionProvider"
_TOLERANCE = 0.02  # of the largest number in an answer: half precision passes, a wrong result does not
_TRIED = 64  # pixels of a side where a model takes any
_MAX_LOADED = 8  # models of one process; the one that was not used for longest is given up


def open_session(path: Path, sha256: str | None = None, *, whole_photos: bool = False) -> Any:
    """Return the onnxruntime session of a model file, with one thread: photos are spread over processes.

    The ONNX file, of any exporter, is adapted once, when it is added or first used: what `adapt_model` made
    of it is kept in the user's cache under the hashes of both. Where nothing can be kept, each process adapts
    it again. A file of the hash `sha256` that was adapted before is not read.
    """
    variant = f"{ADAPTATION}{'-any-size' if whole_photos else ''}"
    name = f"{sha256 or hash_file(path)}-{variant}-"
    folder = registry_cache() / "adapted"
    for kept in folder.glob(f"{name}*.onnx"):
        with suppress(Exception):  # one that cannot be opened is made again
            if hash_file(kept).startswith(kept.stem.removeprefix(name)):
                return _open(str(kept), whole_photos)
    data = path.read_bytes()
    check_hash(str(path), hashlib.sha256(data).hexdigest(), sha256, "replace it or correct its entry")
    try:
        model = adapt_model(data, any_size=whole_photos)
        session = _open(model, whole_photos)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    except Exception as error:  # onnxruntime has no common base of its errors
        raise ModelError(f"{path}: onnxruntime cannot run this model: {error}") from error
    with suppress(OSError):  # a cache that cannot be written costs time at the next start, nothing else
        folder.mkdir(parents=True, exist_ok=True)
        # Several processes may write it at once: what they leave is verified by the hash in its name.
        replace_file(folder / f"{name}{hashlib.sha256(model).hexdigest()[:16]}.onnx", model)
    return session


def forget_adapted(sha256: str) -> None:
    """Delete what is kept of an adapted model."""
    for kept in (registry_cache() / "adapted").glob(f"{sha256}-*.onnx"):
        kept.unlink(missing_ok=True)


class _PooledSession:
    """A session with a memory pool, which each run empties again.

    Without a pool a run gets its large tensors from the system again, which takes a third of its time; a pool
    that is never emptied keeps what the largest photo needed.
    """

    def __init__(self, session: Any) -> None:
        import onnxruntime

        self._session, self._options = session, onnxruntime.RunOptions()
        self._options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def run(self, outputs: list[str] | None, inputs: dict[str, Any]) -> list[Any]:
        """Return the outputs named, all if none are; see `onnxruntime.InferenceSession.run`."""
        return list(self._session.run(outputs, inputs, self._options))


def _onnxruntime() -> Any:
    # Some releases send usage data to their maker unless this is set before the import.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


def chosen_providers() -> list[str]:
    """Return what onnxruntime computes with, best first: `SETNET_PROVIDERS`, and the CPU for the rest."""
    chosen = [name for part in os.environ.get("SETNET_PROVIDERS", "").split(",") if (name := part.strip())]
    if not chosen:
        return [_CPU]
    here = {_short(name): name for name in _onnxruntime().get_available_providers()}
    for name in chosen:
        if _short(name) not in here:
            raise choice_error("provider in SETNET_PROVIDERS", name, sorted(here))
    return list(dict.fromkeys([*(here[_short(name)] for name in chosen), _CPU]))


def _short(provider: str) -> str:
    return provider.lower().removesuffix("executionprovider")


def _open(model: bytes | str, whole_photos: bool) -> Any:
    """Return a session by the chosen providers; another one than the CPU must answer as the CPU does."""
    providers = chosen_providers()
    session = _start(model, whole_photos, providers)
    if providers != [_CPU]:
        if session.get_providers()[0] != providers[0]:
            raise ModelError(f"{providers[0]} could not be started: unset SETNET_PROVIDERS, or repair it")
        check_answers(session, _start(model, whole_photos, [_CPU]), providers[0])
    return _PooledSession(session) if whole_photos and providers == [_CPU] else session


def check_answers(session: Any, reference: Any, provider: str) -> None:
    """Raise `ModelError` if a session answers images of noise otherwise than one on the CPU."""
    (image,) = session.get_inputs()
    shape = [size if isinstance(size, int) else _TRIED for size in image.shape]
    shape[0] = 2 if not isinstance(image.shape[0], int) else shape[0]
    noise = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    for images in (noise, 127.5 + 127.5 * noise):
        answers, expected = (one.run(None, {image.name: images}) for one in (session, reference))
        for answer, right in zip(answers, expected, strict=True):
            apart = float(np.abs(answer - right).max()) / max(float(np.abs(right).max()), 1e-6)
            if not apart <= _TOLERANCE:
                raise ModelError(
                    f"{provider} answers otherwise than the CPU, by {apart:.1%} of the largest number: "
                    "unset SETNET_PROVIDERS, or take another provider"
                )


def _start(model: bytes | str, whole_photos: bool, providers: list[str]) -> Any:
    onnxruntime = _onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    options.log_severity_level = 3  # its warnings are about the exporter, which users cannot change
    # Weight-only quantised files: expand the weights at load, not again in each run.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(model, options, providers=providers)


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
        detector: Detector = _load(name, "detector", registry_state(name), tuple(chosen_providers()))
        return detector


def load_descriptor(name: str) -> Descriptor:
    """Return the descriptor model of that name, loaded; see `load_detector`."""
    with _LOCK:
        descriptor: Descriptor = _load(name, "descriptor", registry_state(name), tuple(chosen_providers()))
        return descriptor


@lru_cache(_MAX_LOADED)
def _load(name: str, kind: str, state: str, providers: tuple[str, ...]) -> Any:
    """Return a model, ready to use, as the entries of a `registry_state` say and by the chosen providers."""
    import cv2

    cv2.setNumThreads(1)  # photos are spread over processes instead
    entry = model_entry(name, kind)
    if kind == "descriptor":
        (file,) = entry.files
        return Descriptor(entry, _open_file(entry, file))
    files, needed = {file.role: file for file in entry.files}, _ROLES[entry.runs]
    if set(files) != set(needed):
        raise ModelError(
            f"model {entry.name!r} needs the files {sorted(needed)}, its entry has {sorted(files)}"
        )
    # YuNet's weights come with a fixed size of image and large tensors; P-Net's have neither.
    first, *others = (_open_file(entry, files[role], role in ("yunet", "model")) for role in needed)
    if entry.runs == "mtcnn":
        return Mtcnn(first, *others)
    return Cascade(YuNet(first), *others) if entry.runs == "cascade" else YuNet(first)


def _open_file(entry: ModelEntry, file: ModelFile, whole_photos: bool = False) -> Any:
    path = find_file(entry, file)
    try:
        return open_session(path, file.sha256, whole_photos=whole_photos)
    except ModelError as error:
        raise ModelError(f"model {entry.name!r}: {error}") from error
