"""Create the files of a library, and refuse to mix descriptors of different models in it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setnet.addresses import is_address
from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, ModelError, NotAnIndexError, StorageError
from setnet.library.indexing.exclusion import checked_patterns
from setnet.library.store.database import Database
from setnet.library.store.location import DATABASE, FILES, INDEX
from setnet.library.store.paths import absolute, existing, is_below, shown
from setnet.library.store.photo_catalog import PhotoCatalog

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.heads import Aggregator, Logistic


def create_files(path: Path, settings: FaceSettings | None, *, beside_others: bool = False) -> None:
    """Create the files of an empty library; with `beside_others` also in a folder that has other files."""
    from setnet.faces import FaceSettings, model_entry, model_paths

    settings = settings or FaceSettings()
    entry = model_entry(settings.descriptor, "descriptor")
    model_paths(entry)
    model_paths(model_entry(settings.detector, "detector"))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)  # biometric data: for its owner alone
    if not beside_others and set(os.listdir(path)) - {INDEX, *FILES}:
        raise InvalidInputError(
            f"{shown(path)} has other files in it: a library needs a folder of its own (--library DIR)"
        )
    assert entry.dim is not None
    _clear_unfinished(path)
    create_index(path / INDEX, settings, entry.dim)
    with closing(Database(path / DATABASE)) as database, database.writing() as db:
        facts = facts_about(settings, entry.dim)
        db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(facts.items()))


def create_index(path: Path, settings: FaceSettings, dim: int) -> None:
    """Create the empty index of a library with these settings."""
    SetIndex.create(path, dim=dim, head=_head(settings, dim), logistic=_logistic(settings)).close()


def facts_about(settings: FaceSettings, dim: int) -> dict[str, str]:
    """Return what a library's database says about how its descriptors are made."""
    return {"dim": str(dim), "settings": json.dumps(settings.to_dict()), "model": fingerprint(settings)}


def library_exists(path: Path) -> bool:
    """Return whether there is a complete library; creating one may have been interrupted."""
    if not (path / DATABASE).is_file():
        return False
    database = Database(path / DATABASE)
    try:
        return PhotoCatalog(database).meta("dim") is not None
    finally:
        database.close()


def _clear_unfinished(path: Path) -> None:
    """Delete the index of a library whose creation was interrupted; one that holds items is refused."""
    if library_exists(path):
        raise InvalidInputError(f"{shown(path)} holds a library already: open it")
    if not (path / DATABASE).exists():  # what a database left that was deleted by hand
        for name in FILES:
            (path / name).unlink(missing_ok=True)
    if (path / INDEX).exists():
        with suppress(NotAnIndexError), SetIndex.open(path / INDEX) as index:
            if len(index):
                raise InvalidInputError(
                    f"{shown(path / INDEX)} is an index without its library: `setnet repair` it, or delete it"
                )
        shutil.rmtree(path / INDEX)


def settings_of(catalog: PhotoCatalog) -> FaceSettings:
    """Return the settings a library was made with."""
    from setnet.faces import FaceSettings

    try:
        return FaceSettings.from_dict(json.loads(catalog.meta("settings") or "{}"))
    except (AttributeError, TypeError, json.JSONDecodeError) as error:
        raise StorageError(f"the library's settings are damaged ({error}): run `setnet repair`") from error


def refuse_other_settings(settings: FaceSettings, chosen: Mapping[str, Any], path: Path) -> None:
    """Raise when the settings chosen for a run are not the library's."""
    own = settings.to_dict()
    for name, value in chosen.items():
        if own[name] != value:
            option = "--" + name.replace("_", "-")
            other = f"index into another library (--library DIR {option} {value})"
            if name == "descriptor":
                other += f", or describe all its faces anew (--redescribe {option} {value})"
            raise InvalidInputError(
                f"the library in {shown(path)} was made with {option} {own[name]}, not {value}: faces found "
                f"in two ways do not compare. Leave {option} out, or {other}"
            )


def refuse_other_model(catalog: PhotoCatalog, settings: FaceSettings) -> None:
    """Raise when the descriptor model of that name is no longer the one that made the library."""
    made_with = catalog.meta("model")
    if made_with is not None and made_with != fingerprint(settings):
        raise ModelError(
            f"the model {settings.descriptor!r} on this machine is not the one this library was made with "
            f"({_short(fingerprint(settings))} in place of {_short(made_with)}): descriptors of two "
            "models or metrics do not compare. Put the old model file back, or describe the faces anew: "
            "`setnet index --redescribe`"
        )


def roots_from(folders: Sequence[str | os.PathLike[str]] | None, catalog: PhotoCatalog) -> list[bytes]:
    """Return the absolute roots of a run; raise for one that is not there and is none the library knows."""
    known = catalog.folders()
    if folders:
        roots = [absolute(folder) for folder in folders]
        away = [folder for folder in known if not is_address(folder) and not os.path.exists(folder)]
        existing(root for root in roots if not any(is_below(root, folder) for folder in away))
        return roots
    if not known:
        raise InvalidInputError("this library has no folder yet: name one, as in `setnet index ~/Photos`")
    return known


def excluded_of(catalog: PhotoCatalog) -> list[str]:
    """Return the patterns of files and folders that a library's index runs leave out."""
    try:
        return checked_patterns(json.loads(catalog.meta("excluded") or "[]"))
    except (AttributeError, TypeError, json.JSONDecodeError) as error:
        raise StorageError(f"the patterns to exclude are damaged ({error}): give them again") from error


def remember(database: Database, roots: Sequence[bytes], excluded: Sequence[str] | None = None) -> None:
    """Store the roots of a run; one inside another is not stored. `excluded` replaces the patterns kept."""
    patterns = None if excluded is None else json.dumps(checked_patterns(excluded))
    now = time.time()
    with database.writing() as db:
        if patterns is not None:
            db.execute("INSERT OR REPLACE INTO meta VALUES ('excluded', ?)", (patterns,))
        known = {row[0] for row in db.execute("SELECT path FROM folders")}
        for root in roots:
            if not any(root != other and is_below(root, other) for other in known):
                db.execute(
                    "INSERT INTO folders (path, added, scanned) VALUES (?, ?, ?) "
                    "ON CONFLICT (path) DO UPDATE SET scanned = excluded.scanned",
                    (root, now, now),
                )


def fingerprint(settings: FaceSettings) -> str:
    """Return what tells the descriptor model of these settings from others, of the same name too."""
    from setnet.faces import model_entry

    entry = model_entry(settings.descriptor, "descriptor")
    name = settings.descriptor if entry.metric is None else f"{settings.descriptor}+{entry.metric.hash}"
    return f"{name} {' '.join(file.sha256 or '' for file in entry.files)}".strip()


def _short(fingerprint: str) -> str:
    name, _, hashes = fingerprint.partition(" ")
    return f"{name}, {hashes[:12]}" if hashes else name


def _logistic(settings: FaceSettings) -> Logistic:
    """Return the score of a single face by the descriptor's calibration."""
    from setnet.faces import calibration_of
    from setnet.heads import ELEMENT_LOGISTIC, Logistic

    numbers = calibration_of(settings.descriptor)
    return Logistic(numbers["w"], numbers["b"]) if {"w", "b"} <= set(numbers) else ELEMENT_LOGISTIC


def _head(settings: FaceSettings, dim: int) -> Aggregator:
    """Return what makes set vectors: the shipped head for this descriptor, else the mean."""
    from setnet.faces import model_entry
    from setnet.heads import Mean, SetNet, shipped_heads

    made_for = model_entry(settings.descriptor, "descriptor").identity
    fitting = [h for h in shipped_heads() if h.descriptor == made_for and h.element_dim == dim]
    # At the same bytes, more dimensions of fewer bits keep more people apart.
    best = sorted(fitting, key=lambda h: (abs(h.bytes_per_item - 512), -h.dim, h.name))
    return SetNet.load(best[0].name) if best else Mean(dim)
