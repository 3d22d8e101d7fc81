"""Builds the shim and runs trials in a server process that forks one child per fault."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["ABANDON", "KINDS", "ROOT", "Outcome", "Trials", "Walk", "build_shim", "program"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]  # where programs import `tests`
KINDS = {"io-error": 1, "disk-full": 2, "short-write": 3, "interrupt": 4, "kill": 5}
ABANDON = 6  # from a call on, none reaches the disk: what a kill leaves, in a process that goes on


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: done, refused, unknown (errors of ours), interrupted, foreign, killed, crashed."""

    calls: int
    ended: str
    text: str
    acknowledged: bool


@dataclass(frozen=True)
class Walk:
    """Random changes of the store ``kind`` in ``root``, and the signal that ends them after some seconds."""

    root: str
    kind: str
    seed: int
    state: Any
    signal: int
    after: float


def build_shim(folder: Path) -> Path | None:
    """Compile the shim; None where there is no compiler or no such thing as preloading."""
    target = folder / "shim.so"
    if not sys.platform.startswith("linux") or not shutil.which("cc"):
        return None
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(target), str(HERE / "shim.c"), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return target


def program(name: str, *given: str) -> list[str]:
    """Return the command of a program of this folder, to be run in `ROOT`."""
    return [sys.executable, "-m", f"tests.faults.{name}", *given]


class Trials:
    """A server of trials; use as a context manager."""

    def __init__(self, shim: Path, *warm: str) -> None:
        environment = os.environ | {"LD_PRELOAD": str(shim), "OPENBLAS_NUM_THREADS": "1"}
        self._server = subprocess.Popen(
            program("fork_server", *warm),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(
        self, root: Path, scenario: str, *, at: int = 0, kind: int = 0, go_on: bool = False, trace: str = ""
    ) -> Outcome:
        """Run a scenario's change in a child of its own, with a fault at its call number ``at``."""
        request = {
            "root": str(root),
            "scenario": scenario,
            "at": at,
            "kind": kind,
            "go_on": go_on,
            "trace": trace,
        }
        return Outcome(**self._ask(request))

    def walk(self, request: Walk) -> list[list[Any]]:
        """Run random changes in a child that gets a signal after a while; return what it reported."""
        reports: list[list[Any]] = self._ask(asdict(request))
        return reports

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._server.communicate(timeout=30)
