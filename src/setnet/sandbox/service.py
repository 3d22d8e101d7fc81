"""The tasks that a worker process can run, what one may take of the machine, and how failures travel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from setnet import errors
from setnet.errors import SetNetError, WorkerError
from setnet.sandbox.messages import Message, invalid_reply

Tasks = Mapping[str, Callable[[Message], Message]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a worker process.

    Attributes
    ----------
    seconds : how long a task may take; then its process is killed
    memory : bytes of private memory of the process. A photo of 128 million pixels, the most that is decoded
        by default, peaks at 1.4 GB (JPEG) to 2.4 GB (transparent PNG), of which 0.2 GB are the models
    reply : bytes of all arrays in a reply
    """

    seconds: float = 60.0
    memory: int = 3 << 30
    reply: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Service:
    """A module with a function ``tasks(options)`` that returns its tasks by name: only these can be run.

    The function is called once per process, so this is where models are loaded; ``options`` must fit JSON.
    """

    module: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def tasks(self) -> Tasks:
        """Import the module in this process and return its tasks."""
        tasks: Tasks = import_module(self.module).tasks(self.options)
        return tasks


def answer(tasks: Tasks, task: Message) -> Message:
    """Run a task and return its reply, or the failure as a reply."""
    try:
        return tasks[task.name](task)
    except Exception as error:
        kind = "MemoryError" if ran_out_of_memory(error) else type(error).__name__
        return Message("failed", {"kind": kind, "text": str(error)})


def ran_out_of_memory(error: BaseException | None) -> bool:
    """Tell whether an error, or what caused it, is a lack of memory."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__
    return False


def failure_in(reply: Message, limits: Limits) -> SetNetError | None:
    """Return the error that a reply reports, as the same class where it is one of ours."""
    if reply.name == "done":
        return None
    if reply.name != "failed":
        raise invalid_reply("neither done nor failed")
    kind, text = reply.text("kind"), reply.text("text")
    if kind == "MemoryError":
        return WorkerError(f"needs more memory than one task may use ({limits.memory / 1e9:.1f} GB)")
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, SetNetError):
        return known(text)
    return WorkerError(f"cannot be processed ({kind})")
