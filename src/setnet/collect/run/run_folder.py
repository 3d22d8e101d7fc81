"""The folder of a run: settings, a manifest per step, the index of captions, the answers of people."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setnet.collect.run.manifest import Manifest
from setnet.collect.run.run_settings import CollectSettings
from setnet.durable import replace_file, storage_errors
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError, StorageError
from setnet.system import FileLock

_SETTINGS = "settings.json"


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
        if (place / _SETTINGS).is_file():
            chosen = cls.open(place).settings.changed(**_absolute(settings))
        else:
            if place.is_dir() and any(place.iterdir()):
                raise InvalidInputError(f"{place} has other files in it: choose a new folder for the run")
            for name, option in (("portraits", "--portraits DIR"), ("photos", "--photos DIR")):
                if not settings.get(name):
                    raise InvalidInputError(f"a new run needs {option}")
            given = _absolute({name: value for name, value in settings.items() if value is not None})
            needed = {"portraits": given.pop("portraits"), "photos": given.pop("photos")}
            chosen = CollectSettings(**needed).changed(**given)
        _refuse_missing(chosen)
        with storage_errors(place, "cannot begin a run in "):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            text = json.dumps(chosen.to_dict(), indent=1, sort_keys=True)
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
            raise StorageError(f"{file}: cannot be read ({error}); `collect begin` writes it anew") from error
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


def _absolute(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with absolute paths: a run may be continued from another folder."""

    def absolute(value: Any) -> Any:
        return os.path.abspath(os.path.expanduser(value))

    made = dict(settings)
    for name in ("portraits", "names", "classifier"):
        if made.get(name) is not None:
            made[name] = absolute(made[name])
    for name in ("photos", "exclude", "distractors"):
        if made.get(name) is not None:
            made[name] = tuple(absolute(each) for each in made[name])
    return made


def _refuse_missing(settings: CollectSettings) -> None:
    for folder in (settings.portraits, *settings.photos, *settings.exclude, *settings.distractors):
        if not os.path.isdir(folder):
            raise InvalidInputError(f"no folder {folder}")
    for file in (settings.names, settings.classifier):
        if file is not None and not os.path.isfile(file):
            raise InvalidInputError(f"no file {file}")
