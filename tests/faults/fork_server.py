"""Runs trials: one forked child per fault, with the shim preloaded. Started by `harness.Trials`.

Reads one JSON request per line; answers with one JSON line: how many calls the trial made, how it ended, and
what came out of it besides the project's own errors.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from scenarios import SCENARIOS

from setnet.errors import SetNetError

SHIM = ctypes.CDLL(os.environ["LD_PRELOAD"])
SHIM.fault_disarm.restype = ctypes.c_long
SHIM.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]


def outcome_of(root: Path, scenario: str) -> tuple[str, str]:
    try:
        SCENARIOS[scenario].change(root)
    except KeyboardInterrupt:
        return "interrupted", ""
    except SetNetError as error:
        return "refused", str(error)
    except BaseException:
        return "foreign", traceback.format_exc()
    return "done", ""


def trial(request: dict[str, Any]) -> dict[str, Any]:
    root = Path(request["root"])
    trace = os.open(request["trace"], os.O_WRONLY | os.O_CREAT, 0o600) if request.get("trace") else -1
    SHIM.fault_arm(os.fsencode(root), request["at"], request["kind"], trace)
    ended, text = outcome_of(root, request["scenario"])
    SHIM.fault_mark(b"done")
    calls = SHIM.fault_disarm()
    if request["go_on"] and ended != "foreign":
        again, text = outcome_of(root, request["scenario"])
        ended = f"{ended}, again {again}"
    return {"calls": calls, "ended": ended, "text": text}


def warm_up() -> None:
    """Load what every child needs, before there are any: models run on one thread and survive a fork."""
    from setnet.faces import load_descriptor, load_detector

    load_detector("mtcnn")
    load_descriptor("sface")


def main() -> None:
    if "library" in sys.argv:
        warm_up()
    for line in sys.stdin:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            answer = trial(json.loads(line))
            os.write(writer, json.dumps(answer).encode())
            os._exit(0)  # as a kill would: nothing is closed that the trial left open
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read().decode()
        status = os.waitpid(child, 0)[1]
        crashed = json.dumps({"calls": 0, "ended": "crashed", "text": str(status)})
        print(said or crashed, flush=True)


main()
