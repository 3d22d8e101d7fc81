"""All exceptions of setnet: errors that a user can cause are `SetNetError` and say what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_AT_A_GLANCE = 6  # in a list no longer than this everybody sees the right name


class SetNetError(Exception):
    """Base of all errors raised by setnet on purpose; the message names the cause and the remedy."""


class InvalidInputError(SetNetError, ValueError):
    """A value given by the caller cannot be used: wrong shape, NaN, unknown name, empty set."""


class UnknownAttributeError(InvalidInputError):
    """A condition names an attribute that no item of the index has."""


class TakenError(InvalidInputError):
    """A name is a saved person's: whether they are meant has to be said. `person` is their JSON."""

    def __init__(self, message: str, person: dict[str, Any]) -> None:
        super().__init__(message)
        self.person = person


class NotAnIndexError(SetNetError):
    """The path holds no index or library, or holds something else."""


class VersionError(SetNetError):
    """The files were written by another version of setnet, which this one cannot read."""


class StorageError(SetNetError):
    """The disk refused, or a stored file is damaged; nothing already stored was changed."""


class OutcomeUnknownError(StorageError):
    """The disk failed while a change was being stored: it may be there or not, and can be repeated."""


class LockedError(SetNetError):
    """Another process is writing to this index."""


class ModelError(SetNetError):
    """A model file is missing, damaged, or does not fit the data."""


class MissingExtraError(SetNetError, ImportError):
    """A library that an optional part of setnet needs is not installed; the message names the extra."""

    def __init__(self, part: str, library: str | None, extra: str) -> None:
        super().__init__(
            f"{part} needs {library}: install it with `pip install 'setnet[{extra}]'`", name=library
        )


class PhotoError(SetNetError):
    """A photo cannot be read."""


class VideoError(PhotoError):
    """A video cannot be read."""


class TrainingError(SetNetError):
    """Training cannot start or go on."""


class WorkerError(SetNetError):
    """A worker process could not do its task: it crashed, was late, ran out of memory or replied nonsense."""


def check_number(name: str, value: object, low: float, high: float) -> None:
    """Raise for a setting that is no number, or outside its limits."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InvalidInputError(f"{name} must be a number from {low} to {high}, not {value!r}")


def choice_error(what: str, value: object, valid: Iterable[object]) -> InvalidInputError:
    """Return the error for a value outside a fixed list, naming the list.

    >>> str(choice_error("mode", "exat", ["exact", "fast"]))
    "unknown mode 'exat': valid are 'exact', 'fast'"
    """
    known = list(valid)
    names = ", ".join(map(repr, known))
    near = near_names(str(value), map(str, known)) if len(known) > _AT_A_GLANCE else []
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return InvalidInputError(f"unknown {what} {value!r}: valid are {names}{hint}")


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that are like a name, upper and lower case alike; the likest first.

    >>> near_names("clea", ["Anna", "Cleo"])
    ['Cleo']
    """
    from difflib import get_close_matches  # rarely needed

    by_key = {other.casefold(): other for other in known}
    return [by_key[key] for key in get_close_matches(name.casefold(), by_key, 3)]
