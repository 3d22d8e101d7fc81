"""Runs `setnet` inside the test's own process, as a user would call it."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest


def called(*words: object, code: int = 0) -> tuple[str, str]:
    """Run a command; return what it wrote to standard output and to standard error."""
    from setnet.cli.app import run

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["setnet", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            run()
    assert left.value.code == code, err.getvalue()
    return out.getvalue(), err.getvalue()


def answered(*words: object, code: int = 0) -> Any:
    """Run a command with `--json`; return its answer."""
    return json.loads(called(*words, "--json", code=code)[0])
