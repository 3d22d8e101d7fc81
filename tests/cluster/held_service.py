"""Tasks that note who runs them, one of which stands still as long as a file is there; run by workers."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setnet.errors import PhotoError
from setnet.workers import Message, Tasks


def tasks(options: Mapping[str, Any]) -> Tasks:
    """Return the tasks; the folder of `options` has a file for each task begun, and `hold`."""
    folder = Path(options["folder"])

    def note(task: Message) -> Message:
        number = task.fields["number"]
        (folder / f"begun {number} by {os.getppid()}").touch()
        while number == options["held"] and (folder / "hold").exists():
            time.sleep(0.02)
        if number == options["bad"]:
            raise PhotoError("no photo")
        return Message("done", {"number": number})

    return {"note": note}
