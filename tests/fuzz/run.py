"""Runs targets on inputs from a seed: random ones, and changed ones of the corpus."""

from __future__ import annotations

import os
import random
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path

from tests.fuzz.choices import Choices
from tests.fuzz.mutation import mutated_bytes
from tests.fuzz.target import Function, limited, watched

__all__ = ["LONGEST", "MEMORY", "Ran", "corpus_of", "keep", "opened", "replay", "run", "survey"]

CORPUS = Path(__file__).parent / "corpus"
MOST_KEPT = 100  # inputs of a target
LONGEST = 256  # bytes of an input: each is a decision
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no disk to wait for


@dataclass(frozen=True, slots=True)
class Ran:
    """How many inputs a run has tried without a finding, and in which time."""

    inputs: int
    seconds: float

    @property
    def rate(self) -> float:
        """Inputs per second."""
        return self.inputs / max(self.seconds, 1e-9)


@contextmanager
def opened(name: str) -> Iterator[Function]:
    """Yield the function of a target, watched, with a folder of its own."""
    module = import_module(f"tests.fuzz.targets.{name}")
    place = os.environ.get("SETNET_FUZZ_FOLDER", MEMORY)
    with (
        tempfile.TemporaryDirectory(prefix="setnet-fuzz-", dir=place) as folder,
        limited(),
        module.target(Path(folder)) as function,
    ):
        yield watched(function)


def corpus_of(name: str) -> list[bytes]:
    """Return the inputs that are kept for a target."""
    file = CORPUS / f"{name}.txt"
    return [bytes.fromhex(line) for line in file.read_text().splitlines()] if file.exists() else []


def keep(name: str, inputs: list[bytes]) -> None:
    """Replace the kept inputs of a target; only the shortest are kept."""
    chosen = sorted(set(inputs), key=lambda data: (len(data), data))[:MOST_KEPT]
    CORPUS.mkdir(exist_ok=True)
    (CORPUS / f"{name}.txt").write_text("".join(f"{data.hex()}\n" for data in chosen if data))


def replay(name: str, inputs: list[bytes]) -> Ran:
    """Try given inputs; the first finding is raised, naming its input."""
    return _tried(name, iter(inputs), 0.0, len(inputs))


def run(name: str, first: int, inputs: int, seconds: float) -> Ran:
    """Try all kept inputs, then those of the seeds from ``first`` until the time is over."""
    corpus = corpus_of(name)
    new = (_input(name, seed, corpus) for seed in range(first, first + inputs))
    return _tried(name, chain(corpus, new), seconds, len(corpus) + 1)


def _input(name: str, seed: int, corpus: list[bytes]) -> bytes:
    rng = random.Random(f"{name} {seed}")
    fresh = rng.randbytes(rng.choice((16, 48, 128, LONGEST)))
    if not corpus or rng.random() < 0.5:
        return fresh
    return mutated_bytes(Choices(fresh), rng.choice(corpus))[:LONGEST]


def _tried(name: str, inputs: Iterator[bytes], seconds: float, least: int) -> Ran:
    count = 0
    with opened(name) as function:
        start = time.monotonic()
        for data in inputs:
            try:
                function(data)
            except BaseException as error:
                error.add_note(f"finding of {name}: {data.hex()}")
                raise
            count += 1
            if count >= least and time.monotonic() - start > seconds:
                break
        return Ran(count, time.monotonic() - start)


def survey(name: str, first: int, inputs: int, seconds: float) -> tuple[Ran, dict[str, tuple[int, bytes]]]:
    """Go on after findings; return them by the place where they were raised, with one input each."""
    corpus, found = corpus_of(name), dict[str, tuple[int, bytes]]()
    with opened(name) as function:
        start, count = time.monotonic(), 0
        for seed in range(first, first + inputs):
            data = _input(name, seed, corpus)
            try:
                function(data)
            except Exception as error:
                times, example = found.get(_place(error), (0, data))
                found[_place(error)] = times + 1, min(data, example, key=len)
            count += 1
            if time.monotonic() - start > seconds:
                break
        return Ran(count, time.monotonic() - start), found


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/setnet/" in frame.filename] or frames
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}"
    return f"{type(error).__name__} at {where}: {str(error)[:150]!r}"
