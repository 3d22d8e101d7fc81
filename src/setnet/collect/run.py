"""The folder of a run: its settings, and a manifest per step that says what became of each photo and why."""

from __future__ import annotations

import json
import math
import os
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from setnet.errors import (
    InvalidInputError,
    LockedError,
    NotAnIndexError,
    StorageError,
    VersionError,
)
from setnet.system import FileLock, usable_cores

Row = dict[str, Any]

FORMAT = 1
_MARK = "setnet collect"
_SETTINGS = "settings.json"
_SYNC_SECONDS = 1.0


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
    detector, descriptor, min_face
        As of `setnet index`.
    rules
        Thresholds by which a face is labelled.
    split
        Shares of people for training, validation and test.
    seed
        Everything random follows from it.
    """

    portraits: str
    photos: tuple[str, ...]
    names: str | None = None
    exclude: tuple[str, ...] = ()
    distractors: tuple[str, ...] = ()
    detector: str = "mtcnn"
    descriptor: str = "sface"
    min_face: float = 40
    rules: AnnotationRules = field(default_factory=AnnotationRules)
    split: tuple[float, float, float] = (0.5, 0.1, 0.4)
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.split) != 3 or min(self.split) < 0 or not math.isclose(sum(self.split), 1.0):
            raise InvalidInputError(
                f"split {self.split}: three shares that add up to 1 are expected, as in 0.5,0.1,0.4"
            )

    def check_paths(self) -> None:
        """Raise for a folder or file that is not there."""
        for folder in (self.portraits, *self.photos, *self.exclude, *self.distractors):
            if not os.path.isdir(folder):
                raise InvalidInputError(f"no folder {folder}")
        if self.names is not None and not os.path.isfile(self.names):
            raise InvalidInputError(f"no file {self.names}")

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
        return Manifest(self.path, step)

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
    if name in ("portraits", "names"):
        return os.path.abspath(os.path.expanduser(value))
    if name in ("photos", "exclude", "distractors"):
        return tuple(os.path.abspath(os.path.expanduser(each)) for each in value)
    return value


@dataclass(frozen=True)
class Work:
    """What the rows of a step are made with."""

    done: set[str]  # the keys of the rows that are there
    # processes that open photos; one per core by default, and 0 works in this process
    workers: int | None = None

    @property
    def processes(self) -> int:
        """How many processes open photos."""
        return usable_cores() if self.workers is None else self.workers


@dataclass
class Summary:
    """How many rows a manifest has, how many were kept, and for what reasons others were dropped."""

    rows: int = 0
    kept: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    checksum: str = ""

    def count(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        reasons = [] if row["kept"] else [str(row["reason"])]
        self.rows += 1
        self.kept += not reasons
        self.reasons.update(reasons)


class Manifest:
    """What became of each photo in a step, and why.

    The rows are in ``STEP.jsonl``, a JSON object per line, and are read one at a time. ``STEP.json`` says
    what they are made from and, once the step is finished, how many there are.
    """

    def __init__(self, folder: Path, step: str) -> None:
        self.path, self._head = folder / f"{step}.jsonl", folder / f"{step}.json"

    def _state(self) -> dict[str, Any]:
        """Return what the head says; nothing if the step was never begun."""
        try:
            with storage_errors(self._head):
                state = json.loads(self._head.read_bytes()) if self._head.is_file() else {}
            is_newer = state.get(_MARK, FORMAT) > FORMAT
        except (ValueError, TypeError, AttributeError) as error:
            raise _damage_error(self._head, str(error)) from error
        if is_newer:
            raise VersionError(
                f"{self._head} is of format {state[_MARK]}, this setnet reads {FORMAT}: use a newer one"
            )
        return dict(state)

    @property
    def is_begun(self) -> bool:
        """Whether the step was begun, finished or not."""
        return self._head.is_file()

    @property
    def exists(self) -> bool:
        """Whether the step is finished."""
        return self.path.is_file() and self._state().get("summary") is not None

    def provenance(self) -> Mapping[str, Any]:
        """Return the settings and earlier manifests that this one was made from."""
        found: Mapping[str, Any] = self._state().get("made from", {})
        return found

    def summary(self) -> Summary:
        """Return the counts of a finished step, without reading the rows."""
        if (found := self._state().get("summary")) is None:
            raise _damage_error(self._head, "the counts are missing")
        return Summary(**found | {"reasons": Counter(found["reasons"])})

    def rows(self) -> Iterator[Row]:
        """Yield all rows in order."""
        left = self.summary().rows
        with storage_errors(self.path), self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    row: Row = json.loads(line)
                except ValueError as error:
                    raise _damage_error(self.path, f"line {number}: {error}") from error
                yield row
                left -= 1
        if left:
            raise _damage_error(self.path, f"{abs(left)} rows too {'few' if left > 0 else 'many'}")

    def kept_rows(self) -> Iterator[Row]:
        """Yield the rows of what was kept."""
        return (row for row in self.rows() if row["kept"])

    def remove(self) -> None:
        """Begin the step again the next time."""
        self._head.unlink(missing_ok=True)

    def write(
        self,
        made_from: Mapping[str, Any],
        key: str,
        make_rows: Callable[[set[str]], Iterable[Row]],
        on_row: Callable[[int], None] | None = None,
    ) -> Summary:
        """Write the rows of a step; what was cut short continues where it ended.

        Rows are on the disk within a second or so. Half a row that a kill or a full disk left is cut off, and
        rows that were made from anything else are made again. `make_rows` is called with the keys of the rows
        that are there, and `on_row` with the number of rows after each.
        """
        summary, digest = Summary(), blake2b(digest_size=8)
        done = self._resume(made_from, key, summary, digest)
        with storage_errors(self.path, "cannot write "):
            file = self.path.open("ab")
        synced = monotonic()
        try:
            for row in make_rows(done):
                if row[key] in done:
                    continue
                line = json.dumps(row).encode() + b"\n"
                with storage_errors(self.path, "cannot write "):
                    file.write(line)
                    if monotonic() - synced > _SYNC_SECONDS:
                        _sync(file)
                        synced = monotonic()
                digest.update(line)
                summary.count(row)
                if on_row is not None:
                    on_row(summary.rows)
        finally:
            with storage_errors(self.path, "cannot write "):
                try:
                    _sync(file)
                finally:
                    file.close()
        summary.checksum = digest.hexdigest()
        counts = {"rows": summary.rows, "kept": summary.kept, "checksum": summary.checksum}
        self._store_head(made_from, counts | {"reasons": dict(summary.reasons.most_common())})
        return summary

    def _resume(self, made_from: Mapping[str, Any], key: str, summary: Summary, digest: blake2b) -> set[str]:
        """Count the rows that are there, cut off half a row at the end, and return the keys."""
        state, done, size = self._state(), set[str](), 0
        with storage_errors(self.path, "cannot write "):
            if state.get("made from") != made_from or state["summary"] or not self.path.is_file():
                self.remove()  # first: rows without a head do not count
                replace_file(self.path, b"")  # for nobody else's eyes: names and descriptors of people
                self._store_head(made_from, None)
            with self.path.open("r+b") as file:
                for line in file:
                    try:
                        row = json.loads(line) if line.endswith(b"\n") else {}
                        found = row[key]
                        summary.count(row)
                    except (ValueError, KeyError, TypeError):
                        break
                    done.add(found)
                    digest.update(line)
                    size += len(line)
                file.truncate(size)
        return done

    def _store_head(self, made_from: Mapping[str, Any], summary: dict[str, Any] | None) -> None:
        with storage_errors(self._head, "cannot write "):
            text = json.dumps({_MARK: FORMAT, "made from": made_from, "summary": summary}, indent=1)
            replace_file(self._head, text.encode())


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _damage_error(path: Path, why: str) -> StorageError:
    return StorageError(f"{path}: damaged ({why}); delete the file and run its step again")


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
