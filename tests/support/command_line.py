"""Runs `setnet` inside the test's own process, as a user would call it: its models are loaded once."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer


class Terminal(io.StringIO):
    """A terminal at which somebody types."""

    def isatty(self) -> bool:
        return True


def setnet(library: Path | None, *words: object, keys: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command, on a library; with `keys`, at a terminal at which these are pressed."""
    from setnet.cli.app import run

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["setnet", *map(str, words)])
        if keys is not None:
            pressed = iter(keys)
            patch.setattr(sys, "stdin", Terminal(keys))
            patch.setattr(typer, "getchar", lambda: next(pressed))
        if library is not None:
            patch.setenv("SETNET_LIBRARY", str(library))
        with pytest.raises(SystemExit) as left:
            run()
    return subprocess.CompletedProcess([], int(left.value.code or 0), out.getvalue(), err.getvalue())


def called(*words: object, code: int = 0) -> tuple[str, str]:
    """Run a command; return what it wrote to standard output and to standard error."""
    done = setnet(None, *words)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def answered(*words: object, code: int = 0) -> Any:
    """Run a command with `--json`; return its answer."""
    return json.loads(called(*words, "--json", code=code)[0])
