"""The registry of models: where a file is, its hash, licence, input and output.

`models.toml` lists what comes with setnet; users add their own. A file with another SHA-256 than its entry
is an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from setnet.durable import replace_file
from setnet.errors import InvalidInputError, ModelError, one_of
from setnet.faces.metric import Metric
from setnet.system import cache_folder, config_folder, data_folder

_KINDS = {"detector": ("cascade", "mtcnn", "yunet"), "descriptor": ("onnx",)}
_ALIGNMENTS = ("five-point", "box")
_COLOURS = ("rgb", "bgr")
_SINGLE = "model"  # the role of a model's only file


@dataclass(frozen=True)
class ModelFile:
    """A file of a model: in an installed package, at a path, at a URL, or inside a wheel to fetch.

    `wheel` is what pip calls a requirement, as in `some-package==1.0`; `file` is then the path in the wheel.
    """

    role: str
    file: str
    package: str | None = None
    url: str | None = None
    sha256: str | None = None
    wheel: str | None = None


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


def entry_from_table(name: str, table: Mapping[str, Any], source: Path) -> ModelEntry:
    """Return the entry that a TOML table describes; relative paths start at the TOML file's folder.

    Raises
    ------
    ModelError
        When a key is unknown, missing or of the wrong kind; the text names file, entry and key.
    """
    reader = _Table(name, dict(table), source)
    kind = reader.choice("kind", tuple(_KINDS))
    runs = reader.choice("runs", _KINDS[kind], _KINDS[kind][0] if len(_KINDS[kind]) == 1 else None)
    entry = ModelEntry(
        name=name,
        kind=kind,
        runs=runs,
        files=reader.files(),
        licence=reader.take("licence", str, "not stated"),
        origin=reader.take("from", str, ""),
        dim=reader.take("dim", int) if kind == "descriptor" else None,
        size=reader.take("size", int, 112),
        colour=reader.choice("colour", _COLOURS, "rgb"),
        mean=reader.mean(),
        scale=float(reader.take("scale", (int, float), 1.0)),
        align=reader.choice("align", _ALIGNMENTS, "five-point"),
        extend=float(reader.take("extend", (int, float), 0.3)),
        output=reader.take("output", str, "") or None,
        terms=reader.take("terms", str, "").strip(),
        calibration=MappingProxyType(reader.take("calibration", dict, {})),
        metric=reader.metric(),
    )
    reader.refuse_leftovers()
    return entry


_MISSING: Any = object()


class _Table:
    """Reads typed values from a TOML table; errors name the file, the entry and the key."""

    def __init__(self, name: str, table: dict[str, Any], source: Path) -> None:
        self._name, self._table, self._source = name, table, source

    def error(self, problem: str) -> ModelError:
        return ModelError(f"{self._source}: model {self._name!r}: {problem}")

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = _MISSING) -> Any:
        value = self._table.pop(key, default)
        if value is _MISSING:
            raise self.error(f"{key!r} is missing")
        if not isinstance(value, kind) or isinstance(value, bool):
            names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
            raise self.error(f"{key!r} must be a {names}, not {value!r}")
        return value

    def choice(self, key: str, valid: tuple[str, ...], default: Any = _MISSING) -> str:
        value: str = self.take(key, str, _MISSING if default is None else default)
        if value not in valid:
            raise self.error(f"{key!r} is {value!r}; valid are {', '.join(map(repr, valid))}")
        return value

    def metric(self) -> Metric | None:
        values = self.take("metric", dict, {})
        try:
            return Metric.of(values, None) if values else None
        except ModelError as error:
            raise self.error(str(error)) from error

    def mean(self) -> tuple[float, float, float]:
        value = self.take("mean", (list, int, float), 0.0)
        values = [float(v) for v in value] if isinstance(value, list) else [float(value)] * 3
        if len(values) != 3:
            raise self.error("'mean' must be one number or three")
        return values[0], values[1], values[2]

    def files(self) -> tuple[ModelFile, ...]:
        package = self.take("package", str, "") or None
        wheel = self.take("wheel", str, "") or None
        parts = self.take("files", dict, {})
        if not parts:
            single = {k: self._table.pop(k) for k in ("file", "path", "url", "sha256") if k in self._table}
            parts = {_SINGLE: single}
        return tuple(self._file(role, dict(part), package, wheel) for role, part in parts.items())

    def _file(self, role: str, part: dict[str, Any], package: str | None, wheel: str | None) -> ModelFile:
        inner = _Table(self._name, part, self._source)
        package = inner.take("package", str, "") or package
        url = inner.take("url", str, "") or None
        sha256 = inner.take("sha256", str, "").lower() or None
        file = inner.take("file", str, "") or inner.take("path", str, "")
        inner.refuse_leftovers()
        if sha256 is None and (url is not None or wheel is not None):
            raise self.error(f"a model with a {'url' if url else 'wheel'!r} needs its 'sha256'")
        if url is not None:
            file = file or url.rsplit("/", 1)[-1]
        elif not file:
            raise self.error(
                "say where the file is: 'package' and 'file', 'wheel' and 'file', 'path', or 'url'"
            )
        if package is None and url is None and wheel is None:
            file = str((self._source.parent / Path(file).expanduser()).resolve())
        return ModelFile(role, file, package, url, sha256, wheel)

    def refuse_leftovers(self) -> None:
        if self._table:
            raise self.error(f"unknown key {', '.join(map(repr, sorted(self._table)))}")


def sha256_of(path: Path, cache: Path | None = None) -> str:
    """Return the file's SHA-256 in hex; with `cache` (a folder), remember it there."""
    if cache is None:
        return _hashed(path)
    stat = path.stat()
    state = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
    key, memory = str(path.resolve()), cache / "hashes.json"
    known = _read(memory)
    entry = known.get(key)
    if isinstance(entry, dict) and entry.get("state") == state and isinstance(entry.get("sha256"), str):
        return str(entry["sha256"])
    digest = _hashed(path)
    _write(memory, {**known, key: {"state": state, "sha256": digest}})
    return digest


def _hashed(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(memory: Path) -> dict[str, object]:
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(memory: Path, known: dict[str, object]) -> None:
    # A cache that cannot be written costs time at the next start, nothing else.
    with contextlib.suppress(OSError):
        memory.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=memory.parent, prefix="hashes-", suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(known, file)
        os.replace(name, memory)


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
            raise one_of(kind, name, sorted(n for n, e in entries.items() if e.kind == kind))
        entry = entries[name]
    if entry.kind != kind:
        raise ModelError(f"model {name!r} is a {entry.kind}, where a {kind} is needed")
    return entry


def model_paths(entry: ModelEntry) -> dict[str, Path]:
    """Return the model's files by role, each with its SHA-256 compared.

    Raises
    ------
    ModelError
        When a file is absent or its hash is not the entry's. Nothing is downloaded.
    """
    return {file.role: _checked(entry, file) for file in entry.files}


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
    table = {"kind": "descriptor", "path": model.name, "sha256": sha256_of(model), "dim": dim, **facts}
    path = model.with_suffix(".toml")
    entry_from_table(name, table, path)  # a bad fact shows here, not when the model is used
    lines = [f"[{_toml(name)}]"] + [f"{key} = {_toml(value)}" for key, value in table.items()]
    part = path.with_name(f"{path.name}.part")  # a registry never sees half an entry
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.replace(part, path)
    return path


def _cache() -> Path:
    """Return where downloaded models and checked hashes are kept (`SETNET_CACHE`, else per user)."""
    chosen = os.environ.get("SETNET_CACHE")
    return Path(chosen).expanduser() if chosen else cache_folder()


def place_of(entry: ModelEntry, file: ModelFile) -> Path | None:
    """Return where the file is or, for a URL, will be; None when its package is not installed."""
    if file.package is not None:
        spec = find_spec(file.package)
        roots = spec.submodule_search_locations if spec is not None else None
        return Path(next(iter(roots))) / file.file if roots else None
    if file.url is not None:
        return _cache() / "models" / entry.name / Path(file.file).name
    if file.wheel is not None:
        return models_folder() / f"{entry.name}{Path(file.file).suffix}"
    return Path(file.file)


def _checked(entry: ModelEntry, file: ModelFile) -> Path:
    path = place_of(entry, file)
    if path is None:
        raise ModelError(
            f"model {entry.name!r} is inside the package {file.package!r}, which is not installed: "
            "install setnet's requirements again"
        )
    if not path.is_file():
        remedy = "install its package again" if file.package else "correct the path in its entry"
        if file.url is not None:
            remedy = f"download it: setnet models --download {entry.name}"
        if file.wheel is not None:
            remedy = f"add it, if its licence ({entry.licence}) suits you: setnet models add {entry.name}"
        raise ModelError(f"model {entry.name!r}: no file {path}; {remedy}")
    if file.sha256 is not None and (actual := sha256_of(path, _cache())) != file.sha256:
        raise ModelError(
            f"model {entry.name!r}: {path} is not the file it should be: its SHA-256 is {actual}, "
            f"expected {file.sha256}; replace the file or correct the entry"
        )
    return path


def _status(entry: ModelEntry) -> ModelStatus:
    places = [place_of(entry, file) for file in entry.files]
    found = all(place is not None and place.is_file() for place in places)
    where = ", ".join(str(p) if p is not None else f"package {entry.files[0].package}" for p in places)
    problem: str | None = None
    hash_ok: bool | None = None
    try:
        model_paths(entry)
        hash_ok = True if all(file.sha256 for file in entry.files) else None
    except ModelError as error:
        problem, hash_ok = str(error), False if found else None
    return ModelStatus(
        entry.name,
        entry.kind,
        entry.dim,
        entry.licence,
        entry.origin,
        where,
        found,
        hash_ok,
        problem,
        can_be_added=not found and any(file.wheel for file in entry.files),
    )


@cache
def _built_in() -> dict[str, ModelEntry]:
    """Return the entries of the package's own file, which is read once: every opening of a library asks."""
    return _entries_in(_BUILT_IN)


def _user_files() -> list[Path]:
    return sorted(models_folder().glob("*.toml")) + _own_files()


def _own_files() -> list[Path]:
    if chosen := os.environ.get("SETNET_MODELS"):
        paths = [Path(part).expanduser() for part in chosen.split(os.pathsep) if part]
        return [file for path in paths for file in (sorted(path.glob("*.toml")) if path.is_dir() else [path])]
    own = config_folder() / "models.toml"
    return [own] if own.is_file() else []


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


def write_calibration(name: str, calibration: Mapping[str, Any], folder: Path) -> Path:
    """Store numbers that were fitted for a model; return the file."""
    if not is_file_name(name):
        raise InvalidInputError(
            f"model {name!r}: a calibration is stored under the model's name, which must be letters, digits, "
            "dots, dashes and underscores"
        )
    path = calibration_file(name, folder)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(dict(calibration), indent=2).encode())
    return path
