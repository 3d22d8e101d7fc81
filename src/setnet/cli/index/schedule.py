"""Units of systemd that run `setnet index` once an hour."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from setnet.cli.output import print_either

NAME = "setnet-index"
_FOLDER = "~/.config/systemd/user"


def print_units(
    photos: Sequence[Path] | None,
    place: Path,
    values: Mapping[str, object],
    exclude: Sequence[str] | None,
    json: bool,
    **flags: bool,
) -> None:
    """Print systemd units for the options of this call."""
    from setnet.errors import InvalidInputError
    from setnet.library import existing

    if flags.pop("watch"):
        raise InvalidInputError("--schedule runs once an hour, --watch all the time: choose one")
    words = [os.fsdecode(path) for path in existing(photos or ())]
    words += ["--library", os.path.abspath(place.expanduser())]
    for name, value in values.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    for pattern in exclude or ():
        words += ["--exclude", pattern]
    words += [f"--{name}" for name, is_set in flags.items() if is_set]
    files = units(words)
    print_either({"files": files}, instructions(files), json)


def units(words: Sequence[str]) -> dict[str, str]:
    """Return a service that runs `setnet index` with these words, and its timer, by name of the file."""
    command = " ".join(_quoted(word) for word in (*_program(), "index", *words))
    service = (
        "[Unit]\nDescription=Find the faces in new photos\n\n"
        f"[Service]\nType=oneshot\nExecStart={command}\n"
        "# some files could not be read, or a disk is away: `setnet status` lists them\nSuccessExitStatus=1\n"
        "Nice=10\nIOSchedulingClass=idle\n"
    )
    timer = (
        "[Unit]\nDescription=Find the faces in new photos once an hour\n\n"
        "[Timer]\nOnCalendar=hourly\nRandomizedDelaySec=5min\nPersistent=true\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )
    return {f"{NAME}.service": service, f"{NAME}.timer": timer}


def instructions(files: dict[str, str]) -> str:
    """Return the units as one text, with where they go and how they are started."""
    parts = [f"# {_FOLDER}/{name}\n{text}" for name, text in files.items()]
    start = f"systemctl --user daemon-reload && systemctl --user enable --now {NAME}.timer"
    return "\n".join([*parts, f"# then: {start}"])


def _program() -> list[str]:
    called = sys.argv[0]
    found = shutil.which(called if os.path.basename(called) == "setnet" else "setnet")
    return [os.path.abspath(found)] if found else [sys.executable, "-m", "setnet"]


def _quoted(word: str) -> str:
    r"""Return a word as systemd reads it in a command line.

    >>> print(_quoted("/mnt/my photos/100 %"), _quoted("--prune"), _quoted("a$b"))
    "/mnt/my photos/100 %%" --prune "a$$b"
    """
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    escaped = escaped.replace("\n", "\\n").replace("\t", "\\t")
    is_plain = word and all(c.isalnum() or c in "-_./=:,+@" for c in word)
    return escaped if is_plain else f'"{escaped}"'
