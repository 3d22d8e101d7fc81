"""Creates the files of a library, restricts who may read them, and says how much they hold.

Descriptors of different models are never mixed in one library.

Descriptors are biometric data, so files are 0600 and folders 0700 whatever the umask; a library that is
shared with a group has 0640 and 0750. The mode of `library.db` is the pattern: its logs get the same.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setnet.addresses import is_address
from setnet.engine import SetIndex
from setnet.engine.settings import BUDGETS, IndexOptions, check_int
from setnet.errors import InvalidInputError, ModelError, NotAnIndexError, StorageError
from setnet.library.database import Database
from setnet.library.folder_scan import check_patterns
from setnet.library.journal import Journal
from setnet.library.paths import (
    DATABASE,
    FILES,
    FOLDERS,
    INDEX,
    JOURNAL,
    QUARANTINE,
    REEMBEDDED,
    THUMBNAILS,
    display_path,
    existing_paths,
    is_below,
    resolve_path,
)
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.photos import FailedPhoto
from setnet.library.schema import Counts
from setnet.system import restrict_access

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.heads import Aggregator, Logistic


def restrict_files(library: Path) -> list[Path]:
    """Let nobody but the owner read the files and folders of a library; return those that others could."""
    return restrict_access(_library_parts(library), group_readable=False)


def _library_parts(library: Path) -> Iterator[Path]:
    """Yield the library's own files and folders."""
    if set(os.listdir(library)) <= {*FILES, *FOLDERS}:  # else the folder is not the library's alone
        yield library
    yield from (library / name for name in FILES)
    for top in (library / name for name in FOLDERS):
        if top.is_dir() and not (top.name == THUMBNAILS and top.stat().st_mode & 0o777 == 0o700):
            for folder, _, files in os.walk(top):
                yield from (Path(folder), *(Path(folder, file) for file in files))


_KEPT_SECONDS = 7 * 24 * 3600.0


def expire_quarantine(library: Path, older_than: float = _KEPT_SECONDS) -> None:
    """Delete what was put aside, or begun and left, longer than `older_than` seconds ago."""
    for aside in (library / QUARANTINE, library / REEMBEDDED):
        if aside.exists() and time.time() - aside.stat().st_mtime >= older_than:
            shutil.rmtree(aside)


def create_files(
    path: Path,
    settings: FaceSettings | None,
    *,
    bytes_per_photo: int | None = None,
    beside_others: bool = False,
) -> None:
    """Create the files of an empty library; with `beside_others` also in a folder that has other files."""
    from setnet.faces import FaceSettings, model_entry, model_paths

    settings = settings or FaceSettings()
    if bytes_per_photo is not None:
        check_int("bytes_per_photo", bytes_per_photo, *BUDGETS)
    entry = model_entry(settings.descriptor, "descriptor")
    model_paths(entry)
    model_paths(model_entry(settings.detector, "detector"))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)  # biometric data: for its owner alone
    if not beside_others and set(os.listdir(path)) - {INDEX, *FILES}:
        raise InvalidInputError(
            f"{display_path(path)} has other files in it: a library needs a folder of its own (--library DIR)"
        )
    assert entry.dim is not None
    _clear_unfinished(path)
    create_index(path / INDEX, settings, entry.dim, bytes_per_photo)
    with closing(Database(path / DATABASE)) as database, database.writing() as db:
        facts = facts_about(settings, entry.dim, bytes_per_photo)
        db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(facts.items()))


def create_index(path: Path, settings: FaceSettings, dim: int, bytes_per_photo: int | None) -> None:
    """Create the empty index of a library with these settings."""
    SetIndex.create(path, dim=dim, **index_options(settings, dim, bytes_per_photo)).close()


def index_options(settings: FaceSettings, dim: int, bytes_per_photo: int | None) -> IndexOptions:
    """Return how the descriptors of photos are kept: as floats with a set vector, or in so many bytes."""
    options: IndexOptions = {"logistic": library_logistic(settings)}
    if bytes_per_photo:
        return {**options, "bytes_per_item": bytes_per_photo}
    return {**options, "head": library_head(settings, dim)}


def facts_about(settings: FaceSettings, dim: int, bytes_per_photo: int | None) -> dict[str, str]:
    """Return what a library's database says about how its descriptors are made and kept."""
    return {
        "dim": str(dim),
        "settings": json.dumps(settings.to_dict()),
        "model": model_fingerprint(settings),
        "bytes_per_photo": str(bytes_per_photo or 0),
    }


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
        raise InvalidInputError(f"{display_path(path)} holds a library already: open it")
    journal = Journal(path / JOURNAL).read()
    if journal is not None and journal.rows["people"]:
        raise InvalidInputError(
            f"{display_path(path)} has the journal of a library that lost its database: `setnet repair` it, "
            "or delete the folder"
        )
    if (path / INDEX).exists():
        with suppress(NotAnIndexError), SetIndex.open(path / INDEX) as index:
            if len(index):
                raise InvalidInputError(
                    f"{display_path(path / INDEX)} is an index without its library: "
                    "`setnet repair` it, or delete it"
                )
        shutil.rmtree(path / INDEX)
    if not (path / DATABASE).exists():  # what a database left that was deleted by hand
        for name in FILES:
            (path / name).unlink(missing_ok=True)


def read_settings(catalog: PhotoCatalog) -> FaceSettings:
    """Return the settings a library was made with."""
    from setnet.faces import FaceSettings

    try:
        return FaceSettings.from_dict(json.loads(catalog.meta("settings") or "{}"))
    except (AttributeError, TypeError, json.JSONDecodeError) as error:
        raise StorageError(f"the library's settings are damaged ({error}): run `setnet repair`") from error


def check_settings(
    settings: FaceSettings, chosen: Mapping[str, Any], place: str | Path, *, collection: bool = False
) -> None:
    """Raise when the settings chosen for a run are not those of its library or collection."""
    own = settings.to_dict()
    for name, value in chosen.items():
        if own[name] != value:
            option = "--" + name.replace("_", "-")
            other = f"index into another library (--library DIR {option} {value})"
            if collection:
                other = "use another collection"
            elif name == "descriptor":
                other += f", or describe all its faces again (--reembed {option} {value})"
            raise InvalidInputError(
                f"the {'collection' if collection else 'library in'} {display_path(place)} was made with "
                f"{option} {own[name]}, not {value}: faces found in two ways do not compare. Leave {option} "
                f"out, or {other}"
            )


def check_bytes(stored: int, wanted: int | None, place: str | Path) -> None:
    """Raise when the bytes per photo chosen for a run are not those of its library or collection."""
    if wanted not in (None, stored):
        made = f"{stored} bytes for each photo" if stored else "floats"
        raise InvalidInputError(
            f"{display_path(place)} keeps descriptors in {made}, which is fixed when it is made: leave "
            "--bytes-per-photo out, or choose another place"
        )


def check_model(catalog: PhotoCatalog, settings: FaceSettings) -> None:
    """Raise when the descriptor model of that name is no longer the one that made the library."""
    made_with = catalog.meta("model")
    if made_with is not None and made_with != model_fingerprint(settings):
        raise ModelError(
            f"the model {settings.descriptor!r} on this machine is not the one this library was made with "
            f"({_short(model_fingerprint(settings))} in place of {_short(made_with)}): descriptors of two "
            "models or metrics do not compare. Put the old model file back, or describe the faces again: "
            "`setnet index --reembed`"
        )


def roots_from(folders: Sequence[str | os.PathLike[str]] | None, catalog: PhotoCatalog) -> list[bytes]:
    """Return the absolute roots of a run; raise for one that is not there and is none the library knows."""
    known = catalog.folders()
    if folders:
        roots = [resolve_path(folder) for folder in folders]
        missing = [folder for folder in known if not is_address(folder) and not os.path.exists(folder)]
        existing_paths(root for root in roots if not any(is_below(root, folder) for folder in missing))
        return roots
    if not known:
        raise InvalidInputError("this library has no folder yet: name one, as in `setnet index ~/Photos`")
    return known


def read_exclusions(catalog: PhotoCatalog) -> list[str]:
    """Return the patterns of files and folders that a library's index runs leave out."""
    try:
        return check_patterns(json.loads(catalog.meta("excluded") or "[]"))
    except (AttributeError, TypeError, json.JSONDecodeError) as error:
        raise StorageError(f"the patterns to exclude are damaged ({error}): give them again") from error


def remember_folders(
    database: Database, roots: Sequence[bytes], excluded: Sequence[str] | None = None
) -> None:
    """Store new roots of a run; one inside another is not stored. `excluded` replaces the patterns kept."""
    known = PhotoCatalog(database).folders()
    new = [root for root in roots if not any(is_below(root, folder) for folder in known)]
    if excluded is None and not new:
        return
    with database.writing() as db:
        if excluded is not None:
            patterns = json.dumps(check_patterns(excluded))
            db.execute("INSERT OR REPLACE INTO meta VALUES ('excluded', ?)", (patterns,))
        db.executemany(
            "INSERT OR IGNORE INTO folders (path, added) VALUES (?, ?)",
            [(root, time.time()) for root in new],
        )


def model_fingerprint(settings: FaceSettings) -> str:
    """Return what tells the descriptor model of these settings from others, of the same name too."""
    from setnet.faces import model_entry

    entry = model_entry(settings.descriptor, "descriptor")
    name = settings.descriptor if entry.metric is None else f"{settings.descriptor}+{entry.metric.hash}"
    return f"{name} {' '.join(file.sha256 or '' for file in entry.files)}".strip()


def _short(fingerprint: str) -> str:
    name, _, hashes = fingerprint.partition(" ")
    return f"{name}, {hashes[:12]}" if hashes else name


def library_logistic(settings: FaceSettings) -> Logistic:
    """Return the score of a single face by the descriptor's calibration."""
    from setnet.faces.settings import load_calibration
    from setnet.heads import ELEMENT_LOGISTIC, Logistic

    numbers = load_calibration(settings.descriptor)
    return Logistic(numbers["w"], numbers["b"]) if {"w", "b"} <= set(numbers) else ELEMENT_LOGISTIC


def library_head(settings: FaceSettings, dim: int) -> Aggregator:
    """Return what makes set vectors: the shipped head for this descriptor, else the mean."""
    from setnet.faces import model_entry
    from setnet.heads import Mean, SetNet, shipped_heads

    made_for = model_entry(settings.descriptor, "descriptor").identity
    fitting = [h for h in shipped_heads() if h.descriptor == made_for and h.element_dim == dim]
    # At the same bytes, more dimensions of fewer bits keep more people apart.
    best = sorted(fitting, key=lambda h: (abs(h.bytes_per_item - 512), -h.dim, h.name))
    return SetNet.load(best[0].name) if best else Mean(dim)


@dataclass(frozen=True, slots=True)
class LibraryStatus:
    """What a library holds, the settings it was made with, and its bytes on disk.

    Where descriptors share `bytes_per_photo` (0 for floats), `crowded` photos have so many faces that they
    take more.
    """

    path: Path
    counts: Counts
    folders: tuple[Path, ...]
    failures: tuple[FailedPhoto, ...]
    settings: FaceSettings
    dim: int
    set_vectors: str
    bytes: int
    bytes_per_photo: int
    crowded: int

    def to_dict(self) -> dict[str, Any]:
        """Return the status as values that JSON can hold."""
        return {
            "library": str(self.path),
            **asdict(self.counts),
            "folders": [str(p) for p in self.folders],
            "failures": [failure.to_dict() for failure in self.failures],
            "settings": self.settings.to_dict(),
            "dim": self.dim,
            "set_vectors": self.set_vectors,
            "bytes": self.bytes,
            "bytes_per_photo": self.bytes_per_photo,
            "crowded": self.crowded,
            "folder_count": self.counts.folders,
        }


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:  # a segment replaced a moment ago
            continue
    return total
