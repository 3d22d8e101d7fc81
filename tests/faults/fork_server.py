"""Runs trials: one forked child per fault, with the shim preloaded. Started by `harness.Trials`.

Reads one JSON request per line and answers each with one JSON line. A trial of a scenario tells how many
calls it made, how it ended, and what came out of it besides the project's own errors. A random walk tells
what the child reported before and after each of its changes.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from setnet.errors import OutcomeUnknownError, SetNetError
from tests.faults.library_scenarios import faces_in, photos_folder, remember_faces
from tests.faults.random_walk import run_child
from tests.faults.scenario import acknowledgement
from tests.faults.scenarios import SCENARIOS

PATIENCE = 60  # seconds without a report until a child counts as hung

SHIM = ctypes.CDLL(os.environ["LD_PRELOAD"])
SHIM.fault_disarm.restype = ctypes.c_long
SHIM.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]


def outcome_of(root: Path, scenario: str) -> tuple[str, str]:
    try:
        SCENARIOS[scenario].change(root)
    except KeyboardInterrupt:
        return "interrupted", ""
    except OutcomeUnknownError as error:
        return "unknown", str(error)
    except SetNetError as error:
        return "refused", str(error)
    except BaseException:
        return "foreign", traceback.format_exc()
    return "done", ""


def trial(request: dict[str, Any]) -> dict[str, Any]:
    root = Path(request["root"])
    trace = os.open(request["trace"], os.O_WRONLY | os.O_CREAT, 0o600) if request["trace"] else -1
    SHIM.fault_arm(os.fsencode(root), request["at"], request["kind"], trace)
    ended, text = outcome_of(root, request["scenario"])
    SHIM.fault_mark(b"done")
    calls = SHIM.fault_disarm()
    if request["go_on"] and ended != "foreign":
        again, text = outcome_of(root, request["scenario"])
        ended = f"{ended}, again {again}"
    answer = {"calls": calls, "ended": ended, "text": text, "acknowledged": acknowledgement.given}
    return answer | {"modules": [*sys.modules]}


def import_all(modules: list[str]) -> None:
    """Import what a child imported, so that the next ones need not."""
    for name in modules:
        if name not in sys.modules:
            with suppress(ImportError):
                import_module(name)
            gc.freeze()


def run_trial(request: dict[str, Any]) -> dict[str, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, json.dumps(trial(request)).encode())
        os._exit(0)  # as a kill would: nothing is closed that the trial left open
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        reply = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    if reply:
        answer: dict[str, Any] = json.loads(reply)
        import_all(answer.pop("modules"))
        return answer
    ended = "killed" if status == signal.SIGKILL else "crashed"
    return {"calls": 0, "ended": ended, "text": str(status), "acknowledged": False}


def run_walk(request: dict[str, Any]) -> list[Any]:
    reader, writer = os.pipe()
    with tempfile.TemporaryFile("w+") as stacks:
        child = os.fork()
        if child == 0:
            faulthandler.enable(stacks)
            run_child(request, lambda report: os.write(writer, json.dumps(report).encode() + b"\n"))
        os.close(writer)
        reports, is_hung = read_pipe(reader, b"", until=b"\n")
        if not is_hung:
            time.sleep(request["after"])
            os.kill(child, request["signal"])
            reports, is_hung = read_pipe(reader, reports)
        if is_hung:
            os.kill(child, signal.SIGABRT)  # its stacks are written, and it ends
        os.close(reader)
        status = os.waitpid(child, 0)[1]
        answer = [json.loads(line) for line in reports.splitlines()]
        if is_hung:
            stacks.seek(0)
            answer.append(["hung", stacks.read()])
    return [*answer, ["status", status]]


def read_pipe(pipe: int, read: bytes, until: bytes | None = None) -> tuple[bytes, bool]:
    """Add what a child reports until it ends, or until some bytes; tell whether it fell silent instead."""
    while until is None or until not in read:
        if not select.select([pipe], [], [], PATIENCE)[0]:
            return read, True
        if not (more := os.read(pipe, 1 << 16)):
            break
        read += more
    return read, False


def warm_up() -> None:
    """Load what every child needs, before there are any: models run on one thread and survive a fork."""
    remember_faces()
    for photo in photos_folder().glob("*/*.jpg"):
        faces_in(photo)


def main() -> None:
    if "library" in sys.argv:
        warm_up()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs behind `&`
    gc.freeze()  # a collection in a child would copy every page
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(run_trial(request) if "scenario" in request else run_walk(request)), flush=True)


main()
