"""Ctrl-C at any call comes out as `KeyboardInterrupt`, and the library can be used on."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from PIL import Image

import setnet
from setnet.library import Example, Library
from tests.support.invented_photos import face_of, store

SOURCES = str(Path(setnet.__file__).parent)
# Python itself drops what is raised where an object is given up, as a generator that was not read to its end.
UNHEARD = {"__del__", "<lambda>", "<genexpr>"}
Operation = Callable[[Library], Any]


@contextmanager
def interrupt_at(number: int) -> Iterator[list[str]]:
    """Raise `KeyboardInterrupt` at the n-th call of a function of ours; give the calls so far."""
    calls: list[str] = []

    def trace(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_filename.startswith(SOURCES) and frame.f_code.co_name not in UNHEARD:
            calls.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")
            if len(calls) == number:
                raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield calls
    finally:
        sys.settrace(before)


def search(library: Library) -> None:
    assert library.search(["Anna", "Ben"])


def discover(library: Library) -> None:
    assert not library.groups.update(again=True).interrupted


def edit(library: Library) -> None:
    library.people.edit("Anna", note=str(random.random()))


def index(library: Library) -> None:
    """Read a photo that was altered; a run that is interrupted stores what it has and says so."""
    Image.new("RGB", (64, 48), random.randrange(2**24)).save(library.path.parent / "photos" / "empty.png")
    report = library.index([library.path.parent / "photos"], workers=0)
    if report.interrupted:
        raise KeyboardInterrupt


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """A library of people, with a folder for a photo of nobody."""
    (tmp_path / "photos").mkdir()
    with Library.create(tmp_path / "library") as made:
        store(made, {f"{n}.jpg": [n % 4, (n + 1) % 5] for n in range(12)})
        for person, name in enumerate(("Anna", "Ben")):
            made.people.add(name, [Example(face_of(person, 100), "portrait")])
        yield made


def interrupt(library: Library, operation: Operation, at: int) -> None:
    """Interrupt an operation at a call, and use the library on."""
    with interrupt_at(at) as calls:
        try:
            operation(library)
        except KeyboardInterrupt:
            pass
        except BaseException as error:
            raise AssertionError(f"Ctrl-C at call {at}, {calls[-1]}, became {error!r}") from error
        else:
            assert len(calls) < at, f"Ctrl-C at call {at}, {calls[at - 1]}, was swallowed"
    search(library)


def try_operation(library: Library, operation: Operation, most: int) -> None:
    """Interrupt an operation at the first call of each function and at others, at no more than `most`."""
    operation(library)  # imports and fills caches
    with interrupt_at(0) as calls:
        operation(library)
    chance, first = random.Random(1), {name: at for at, name in reversed([*enumerate(calls, 1)])}
    places = chance.sample([*first.values()], len(first))
    places += chance.sample(others := sorted({*range(1, len(calls) + 1)} - {*places}), len(others))
    for at in places[:most]:
        interrupt(library, operation, at)
    assert library.check() == []


OPERATIONS = {"search": search, "discover": discover, "edit": edit, "index": index}


@pytest.mark.parametrize("name", OPERATIONS)
def test_ctrl_c_at_any_call_is_a_keyboard_interrupt(library: Library, name: str) -> None:
    try_operation(library, OPERATIONS[name], 40)


@pytest.mark.soak
@pytest.mark.parametrize("name", OPERATIONS)
def test_ctrl_c_at_every_call_is_a_keyboard_interrupt(library: Library, name: str) -> None:
    try_operation(library, OPERATIONS[name], 100_000)
