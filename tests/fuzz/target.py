"""What every target is held to: errors of our own, in bounded time and memory."""

from __future__ import annotations

import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from setnet.errors import SetNetError

__all__ = ["CPU_SECONDS", "MEMORY_GROWTH", "Function", "attempt", "limited", "watched"]

Function = Callable[[bytes], None]
CPU_SECONDS = 5.0
MEMORY_GROWTH = 512 << 20  # bytes that one input may add to the largest size of the process


def attempt(action: Callable[[], object]) -> bool:
    """Run an action that may refuse with an error of setnet; return whether it succeeded."""
    with suppress(SetNetError):
        action()
        return True
    return False


@contextmanager
def limited() -> Iterator[None]:
    """Turn warnings into errors, and make an input that takes too much processor time raise."""

    def late(number: int, frame: object) -> None:
        raise AssertionError(f"no answer after {CPU_SECONDS} s of processor time")

    before = signal.signal(signal.SIGPROF, late)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter(
                "ignore", ResourceWarning
            )  # a client that goes early leaves a file to collect
            warnings.filterwarnings("ignore", "Reading `.npy` or `.npz` file required additional header")
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def watched(function: Function) -> Function:
    """Return the function with the limits of `limited` on every call; whatever it raises is a finding."""

    def run(data: bytes) -> None:
        before = _largest_size()
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            function(data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        grown = _largest_size() - before
        if grown > MEMORY_GROWTH:
            raise AssertionError(f"the process grew by {grown >> 20} MB")

    return run


def _largest_size() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
