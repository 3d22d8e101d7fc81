"""The folder of a run: its settings, and a manifest per step that says what became of each photo and why."""

from __future__ import annotations

import json
import math
import os
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from setnet.collect.rules import AnnotationRules
from setnet.durable import replace_file, storage_errors
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError, StorageError, VersionError
from setnet.system import FileLock, sync_folder

Row = dict[str, Any]

FORMAT = 1
_MARK = "setnet collect"
_SETTINGS = "settings.json"
_FLUSH_SECONDS = 1.0
_LONGEST_END = 1 << 16


@dataclass(frozen=True)
class CollectSettings:
    """Settings of a run.

    Attributes
    ----------
    portraits
        Folder with a folder of portraits for each person, which is called as the person is.
    photos
        Folders of the archive.
    names
        File with the list of names; by default the names are those of the folders of portraits.
    exclude
        Folders of another collection: photos that are also there, or nearly so, are dropped.
    distractors
        Folders of photos of other people.
    answers_per_search, answers_per_pair
        How many photos are looked at of each search for companions, and of each search for a pair.
    names_needed
        How many of a pair's two names must be in a photo's text.
    min_faces
        Photos with fewer faces are dropped.
    detector, descriptor, min_face
        As of `setnet index`.
    rules
        Thresholds by which a face is labelled.
    classifier
        File of a classifier of one's own; by default one is made from the portraits.
    strangers
        Share of faces that are of nobody in the list. The default follows from the paper's tables 1 and 2:
        of 546,000 faces, 319,000 are celebrities'.
    split
        Shares of people for training, validation and test.
    queries
        How many test queries of two people, and of three.
    distractor_photos
        How many distractor photos at most; None takes as many as fit.
    seed
        Everything random follows from it.
    """

    portraits: str
    photos: tuple[str, ...]
    names: str | None = None
    exclude: tuple[str, ...] = ()
    distractors: tuple[str, ...] = ()
    answers_per_search: int = 100
    answers_per_pair: int = 100
    names_needed: int = 2
    min_faces: int = 2
    detector: str = "mtcnn"
    descriptor: str = "sface"
    min_face: float = 40
    rules: AnnotationRules = field(default_factory=AnnotationRules)
    classifier: str | None = None
    strangers: float = 0.42
    split: tuple[float, float, float] = (0.5, 0.1, 0.4)
    queries: tuple[int, int] = (500, 500)
    distractor_photos: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("answers_per_search", 1, 10_000),
            ("answers_per_pair", 1, 100_000),
            ("names_needed", 1, 2),
            ("min_faces", 1, 100),
            ("strangers", 0.01, 0.99),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InvalidInputError(f"{name} must be a number from {low} to {high}, not {value!r}")
        if len(self.split) != 3 or min(self.split) < 0 or not math.isclose(sum(self.split), 1.0):
            raise InvalidInputError(
                f"split {self.split}: three shares that add up to 1 are expected, as in 0.5,0.1,0.4"
            )

    def check_paths(self) -> None:
        """Raise for a folder or file that is not there."""
        for folder in (self.portraits, *self.photos, *self.exclude, *self.distractors):
            if not os.path.isdir(folder):
                raise InvalidInputError(f"no folder {folder}")
        for file in (self.names, self.classifier):
            if file is not None and not os.path.isfile(file):
                raise InvalidInputError(f"no file {file}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CollectSettings:
        """Return the settings in a dict; unknown names are an error."""
        known = {each.name for each in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise InvalidInputError(
                f"unknown setting {', '.join(map(repr, unknown))}: valid are {', '.join(sorted(known))}"
            )
        given: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        try:
            return cls(**given | {"rules": AnnotationRules(**given.get("rules", {}))})
        except TypeError as error:
            raise InvalidInputError(f"settings of a run: {error}") from error


class CollectRun:
    """A run of `setnet collect`; steps read its settings and earlier manifests, and write their own."""

    def __init__(self, path: Path, settings: CollectSettings) -> None:
        self.path, self.settings = path, settings

    @classmethod
    def begin(cls, path: str | Path, **settings: Any) -> CollectRun:
        """Begin a run in a new or empty folder, or change the given settings of one that is there.

        Steps that depend on a changed setting are done again when they are run; answers of people stay.
        """
        place = Path(path).expanduser().absolute()
        given = {name: _resolve(name, value) for name, value in settings.items() if value is not None}
        rule_names = {each.name for each in fields(AnnotationRules)}
        changes = {name: given.pop(name) for name in rule_names & set(given)}
        if (place / _SETTINGS).is_file():
            old = cls.open(place).settings
            chosen = replace(old, rules=replace(old.rules, **changes), **given)
        else:
            if place.is_dir() and any(place.iterdir()):
                raise InvalidInputError(f"{place} has other files in it: choose a new folder for the run")
            for name in ("portraits", "photos"):
                if not given.get(name):
                    raise InvalidInputError(f"a new run needs --{name} DIR")
            chosen = CollectSettings(rules=AnnotationRules(**changes), **given)
        chosen.check_paths()
        with storage_errors(place, "cannot begin a run in "):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            text = json.dumps(asdict(chosen), indent=1, sort_keys=True)
            replace_file(place / _SETTINGS, text.encode())
        return cls(place, chosen)

    @classmethod
    def open(cls, path: str | Path) -> CollectRun:
        """Open a run."""
        place = Path(path).expanduser().absolute()
        file = place / _SETTINGS
        if not file.is_file():
            raise NotAnIndexError(f"{place} holds no run of `setnet collect`: begin one with `collect begin`")
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StorageError(f"{file}: cannot be read ({error}); delete it and begin again") from error
        return cls(place, CollectSettings.from_dict(values))

    def manifest(self, step: str) -> Manifest:
        """Return the manifest of a step, whether it is there or not."""
        return Manifest(self.path / f"{step}.jsonl")

    @contextmanager
    def locked(self, name: str = "run") -> Iterator[None]:
        """Keep other processes from working on the run."""
        try:
            lock = FileLock(self.path / f"{name}.lock")
        except LockedError as error:
            raise LockedError(f"the run {self.path} is being worked on by another process: wait") from error
        try:
            yield
        finally:
            lock.close()


def _resolve(name: str, value: Any) -> Any:
    """Return a setting with absolute paths: a run may be continued from another folder."""
    if name in ("portraits", "names", "classifier"):
        return os.path.abspath(os.path.expanduser(value))
    if name in ("photos", "exclude", "distractors"):
        return tuple(os.path.abspath(os.path.expanduser(each)) for each in value)
    return value


@dataclass
class Summary:
    """How many rows a manifest has, how many were kept, and for what reasons others were dropped."""

    rows: int = 0
    kept: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    checksum: str = ""

    def count(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self.rows += 1
        if row["kept"]:
            self.kept += 1
        else:
            self.reasons[str(row["reason"])] += 1


class Manifest:
    """A finished manifest on disk, a JSON object per line; its rows are read one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def exists(self) -> bool:
        """Whether the step is finished."""
        return self.path.is_file()

    def provenance(self) -> Mapping[str, Any]:
        """Return the settings and earlier manifests that this one was made from."""
        with storage_errors(self.path), self.path.open("rb") as file:
            return _header(file.readline(), self.path)

    def summary(self) -> Summary:
        """Return the counts at the end of the file, without reading the rows."""
        with storage_errors(self.path), self.path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_END))
            last = file.read().splitlines()[-1]
        end = _parse(last, self.path, "the last line")
        if "end" not in end:
            raise _damage_error(self.path, "the last line", "the counts are missing")
        return Summary(end["rows"], end["kept"], Counter(end["reasons"]), end["checksum"])

    def rows(self) -> Iterator[Row]:
        """Yield all rows in order."""
        with storage_errors(self.path), self.path.open("rb") as file:
            _header(file.readline(), self.path)
            for number, line in enumerate(file, 2):
                row = _parse(line, self.path, f"line {number}")
                if "end" in row:
                    return
                yield row
        raise _damage_error(self.path, "the end", "the counts are missing")

    def kept_rows(self) -> Iterator[Row]:
        """Yield the rows of what was kept."""
        return (row for row in self.rows() if row["kept"])


class ManifestWriter:
    """Writes a manifest; one that was cut short is continued where it ended.

    Rows go to ``NAME.part``, which becomes the manifest in `finish`: a manifest that exists is whole. What a
    kill or a full disk left of the last line is cut off.

    Parameters
    ----------
    path
        The manifest.
    made_from
        What it is made from; a part that was made from anything else is begun again.
    key
        The field that tells rows apart.
    """

    def __init__(self, path: Path, made_from: Mapping[str, Any], key: str) -> None:
        self.path, self.key = path, key
        self.done: set[str] = set()
        self.summary = Summary()
        self._part = path.with_name(f"{path.name}.part")
        self._hash = blake2b(digest_size=8)
        self._flushed = monotonic()
        header = json.dumps({_MARK: FORMAT, "made from": made_from}, sort_keys=True).encode() + b"\n"
        with storage_errors(self._part, "cannot write "):
            self._file: IO[bytes] = self._part.open("r+b" if self._part.is_file() else "w+b")
            os.chmod(self._part, 0o600)  # names and descriptors of people
            self._file.truncate(self._resume(header))
            self._file.seek(0, os.SEEK_END)

    def __enter__(self) -> ManifestWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._file.closed:
            try:
                self._flush()
            finally:
                self._file.close()

    def _resume(self, header: bytes) -> int:
        """Count the rows that are there; return where the whole ones end."""
        if self._file.readline() != header:
            self._file.seek(0)
            self._file.write(header)
            self._file.flush()
            return len(header)
        end = len(header)
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            try:
                row = json.loads(line)
                self.summary.count(row)
                self.done.add(row[self.key])
            except (ValueError, KeyError, TypeError):
                break
            self._hash.update(line)
            end += len(line)
        return end

    def add(self, row: Row) -> None:
        """Append a row; it is on the disk within a second or so."""
        line = json.dumps(row).encode() + b"\n"
        with storage_errors(self._part, "cannot write "):
            self._file.write(line)
        self._hash.update(line)
        self.summary.count(row)
        if monotonic() - self._flushed > _FLUSH_SECONDS:
            self._flush()

    def _flush(self) -> None:
        with storage_errors(self._part, "cannot write "):
            self._file.flush()
            os.fsync(self._file.fileno())
        self._flushed = monotonic()

    def finish(self) -> Summary:
        """Write the counts and let the manifest take its place."""
        self.summary.checksum = self._hash.hexdigest()
        end = {"end": True} | asdict(self.summary) | {"reasons": dict(self.summary.reasons.most_common())}
        with storage_errors(self._part, "cannot write "):
            self._file.write(json.dumps(end).encode() + b"\n")
        self._flush()
        self._file.close()
        with storage_errors(self.path, "cannot write "):
            os.replace(self._part, self.path)
            sync_folder(self.path.parent)
        return self.summary


def _header(line: bytes, path: Path) -> Mapping[str, Any]:
    header = _parse(line, path, "line 1")
    if _MARK not in header:
        raise _damage_error(path, "line 1", "it is no manifest of `setnet collect`")
    if header[_MARK] > FORMAT:
        raise VersionError(
            f"{path} is of format {header[_MARK]}, this setnet reads {FORMAT}: use a newer one"
        )
    found: Mapping[str, Any] = header["made from"]
    return found


def _parse(line: bytes, path: Path, where: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise _damage_error(path, where, str(error)) from error
    if not isinstance(row, dict):
        raise _damage_error(path, where, "it is no JSON object")
    return row


def _damage_error(path: Path, where: str, why: str) -> StorageError:
    return StorageError(f"{path}, {where}: damaged ({why}); delete the file and run its step again")


def pack(numbers: NDArray[np.float32]) -> str:
    """Return numbers as text for JSON: base64 of float32, a quarter of what their decimals take.

    >>> unpack(pack(np.array([1.0, 2.5], np.float32))).tolist()
    [1.0, 2.5]
    """
    return b64encode(np.ascontiguousarray(numbers, "<f4").tobytes()).decode()


def unpack(text: str) -> NDArray[np.float32]:
    """Return the numbers of a text."""
    try:
        return np.frombuffer(b64decode(text, validate=True), "<f4").astype(np.float32)
    except (ValueError, TypeError) as error:
        raise StorageError(f"damaged numbers in a manifest ({error}): run its step again") from error


def descriptors_in(row: Row) -> NDArray[np.float32]:
    """Return the descriptors of the faces in a photo's row, (n, D)."""
    return np.stack([unpack(face["descriptor"]) for face in row["faces"]])
