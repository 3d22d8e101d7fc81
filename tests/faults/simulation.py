"""Plays a writer, readers, a second writer, faults, kills, clock jumps and restarts in one process.

    LD_PRELOAD=shim.so python -m tests.faults.simulation index 7 10000 FOLDER

makes 10,000 events of an index (or of a ``library``), all of them chosen by the seed 7, and compares what
is stored with a model after each. A run that fails prints its seed and its last events. `test_simulation.py`
builds the shim and starts this program.

A kill is a writer that is abandoned: from a random call on, none of its calls reaches the disk any more, its
files are closed and its memory is given up. Readers stay open beside it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import shutil
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from setnet.errors import InvalidInputError, LockedError, OutcomeUnknownError, SetNetError, StorageError
from tests.faults.harness import ABANDON, KINDS
from tests.faults.simulated import SIMULATED, Simulated

SHIM = ctypes.CDLL(os.environ["LD_PRELOAD"])
SHIM.fault_calls.restype = ctypes.c_long
SHIM.fault_set.argtypes = [ctypes.c_long, ctypes.c_int]
SHIM.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]

FAULTS = [kind for kind in KINDS if kind != "kill"]
READERS = 3
JUMPS = (-400 * 86400, -86400, -3600, 3600, 8 * 86400, 400 * 86400)  # seconds
SHOWN = 25  # last events of a run that fails


class Clock:
    """The time of day, which jumps."""

    def __init__(self) -> None:
        self._real, self.offset = time.time, 0.0
        setattr(time, "time", lambda: self._real() + self.offset)  # noqa: B010 - every module sees it


class Simulation:
    """One store with its model, and everybody who uses it.

    Attributes
    ----------
    possible
        The states that the store may be in: several between a change of unknown outcome and the next look.
    """

    def __init__(self, store: Simulated, folder: Path, seed: int) -> None:
        self.store, self.root, self.chance = store, folder / "root", random.Random(seed)
        self.backup = folder / "backup"
        self.clock, self.counts = Clock(), Counter[str]()
        self.last: deque[str] = deque(maxlen=SHOWN)
        self.root.mkdir(parents=True)
        SHIM.fault_arm(os.fsencode(self.root), 0, 0, -1)
        self.possible = [store.make(self.root)]
        self.writer: Any = None
        self.readers: list[Any] = []
        self.calls: dict[str, int] = {}  # of the latest change of each kind
        self.roles: dict[Callable[[], None], int] = {
            self.write: 50,
            self.fail: 12,
            self.kill: 5,
            self.read: 16,
            self.fail_to_read: 3,
            self.write_beside: 3,
            self.reopen: 3,
            self.restart: 1,
            self.kill_all: 2,
            self.jump: 2,
            self.check: 2,
            self.back_up: 1,
            self.repair: 1,
        }

    def run(self, events: int) -> None:
        """Make events, and look at everything at the end."""
        roles, weights = list(self.roles), list(self.roles.values())
        for _ in range(events):
            role = self.chance.choices(roles, weights)[0]
            self.counts[role.__name__] += 1
            self.note(role.__name__)
            role()
        self.note("end")
        self.restart()
        self.check()

    def note(self, text: str) -> None:
        """Begin the line of an event among the last ones."""
        self.last.append(f"{sum(self.counts.values())} {text}")

    def say(self, text: object) -> None:
        """Add to the line of the event."""
        self.last[-1] += f"; {text}"

    # -- what everybody needs ------------------------------------------------------------------------

    def opened(self) -> Any:
        """Return the writer, which is opened if it is not."""
        if self.writer is None:
            self.writer = self.store.open(self.root)
        return self.writer

    def look(self, opened: Any) -> None:
        """Compare what is held with the states that are possible; there is one of them afterwards."""
        held = self.store.held(opened)
        fitting = [state for state in self.possible if self.store.expected(state) == held]
        if not fitting:
            expected = [self.store.expected(state) for state in self.possible]
            raise AssertionError(f"other contents than expected:\n{held!r}\n{expected!r}")
        self.possible = fitting[:1]

    @contextmanager
    def fault(self, kind: int, what: str) -> Iterator[None]:
        """Let a random call of those that a change of this kind makes fail."""
        at = self.chance.randint(1, self.calls.get(what, 40) + 2)
        self.say(f"call {at}")
        SHIM.fault_set(at, kind)
        try:
            yield
        finally:
            SHIM.fault_set(0, 0)

    def settle(self) -> None:
        """Open the store again, finish what was cut short as the documentation says, and look."""
        with suppress(StorageError):
            self.opened().close()
        self.writer = None
        gc.collect()
        self.store.finish(self.opened())
        self.look(self.writer)

    def propose(self) -> Any:
        change = self.store.propose(self.possible[0], self.chance)
        self.say(change)
        return change

    # -- the roles -----------------------------------------------------------------------------------

    def write(self) -> None:
        """Make a change."""
        change = self.propose()
        self.change(self.opened(), change)

    def change(self, opened: Any, change: Any) -> None:
        after = self.store.apply(self.possible[0], change)
        SHIM.fault_set(0, 0)
        try:
            self.store.perform(opened, change, after)
        except InvalidInputError:
            assert after is None, "a change was refused that is possible"
            return
        assert after is not None, "a change was made that is not possible"
        self.calls[change[0]] = SHIM.fault_calls()
        self.possible = [after]
        self.store.audit(self.root, change, after)

    def fail(self) -> None:
        """Make a change while the disk fails or somebody presses Ctrl-C, then go on."""
        kind, change, opened = self.chance.choice(FAULTS), self.propose(), self.opened()
        before, after = self.possible[0], self.store.apply(self.possible[0], change)
        ended: BaseException | None = None
        with self.fault(KINDS[kind], change[0]):
            self.say(kind)
            try:
                self.store.perform(opened, change, after)
            except (SetNetError, KeyboardInterrupt) as error:
                ended = error
        self.counts[kind] += 1
        self.say(repr(ended))
        if after is None:
            assert ended is not None
        elif ended is None:
            self.possible = [after]
        elif isinstance(ended, OutcomeUnknownError | KeyboardInterrupt) or not self.store.is_one_step(change):
            self.possible = [before, after, *self.store.between(before, change)]
            self.settle()
        elif isinstance(ended, InvalidInputError):
            raise AssertionError("a disk that failed was taken for a wrong call") from ended
        if kind != "interrupt":
            assert not isinstance(ended, KeyboardInterrupt)
        self.look(opened if self.writer is opened else self.opened())

    def kill(self) -> None:
        """Abandon the writer at a random call."""
        change, opened = self.propose(), self.opened()
        before, after = self.possible[0], self.store.apply(self.possible[0], change)
        self.possible = [before, *([after] if after is not None else []), *self.store.between(before, change)]
        with self.fault(ABANDON, change[0]):
            with suppress(SetNetError):
                self.store.perform(opened, change, after)
                if after is not None:
                    self.possible = [after]
                self.say("done")
            del opened
            SHIM.fault_set(1, ABANDON)  # the change may have needed fewer calls
            self.abandon()
        self.settle()

    def abandon(self) -> None:
        """Give the writer up without a call that reaches the disk."""
        with suppress(StorageError):
            self.writer.close()
        self.writer = None
        gc.collect()

    def kill_all(self) -> None:
        """Abandon the writer and all readers: the next open finds what the disk has."""
        SHIM.fault_set(1, ABANDON)
        for reader in self.readers:
            with suppress(StorageError):
                reader.close()
        self.readers = []
        if self.writer is not None:
            self.abandon()
        gc.collect()
        SHIM.fault_set(0, 0)
        self.settle()

    def read(self) -> None:
        """Look at the store by a reader that is open, or by a new one."""
        if self.chance.random() < 0.15 and self.readers:
            self.readers.pop(self.chance.randrange(len(self.readers))).close()
        if len(self.readers) < READERS:
            self.readers.append(self.store.open_reader(self.root))
        reader = self.chance.choice(self.readers)
        self.look(reader)
        self.store.search(reader, self.possible[0], self.chance)

    def fail_to_read(self) -> None:
        """Look at the store while the disk fails: an error of ours, or what is there."""
        reader = None
        with self.fault(KINDS["io-error"], "read"):
            try:
                reader = self.store.open_reader(self.root)
                self.look(reader)
                self.store.search(reader, self.possible[0], self.chance)
                self.say("done")
            except StorageError as error:
                self.say(error)
            self.calls["read"] = max(self.calls.get("read", 0), SHIM.fault_calls())
        if reader is not None:
            self.look(reader)
            reader.close()

    def write_beside(self) -> None:
        """Let a second writer try: it is refused while the first holds the lock, or writes in its turn."""
        change = self.propose()
        try:
            second = self.store.open(self.root)
        except LockedError:
            assert self.writer is not None, "locked by nobody"
            return
        assert self.writer is None or self.store.writers_take_turns
        self.change(second, change)
        if self.writer is not None:
            self.look(self.writer)
        second.close()

    def reopen(self) -> None:
        """Close the writer, and maybe open it again."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None
        if self.chance.random() < 0.5:
            self.look(self.opened())

    def restart(self) -> None:
        """Close everything and open it again."""
        for opened in [*self.readers, *([self.writer] if self.writer is not None else [])]:
            opened.close()
        self.readers, self.writer = [], None
        self.look(self.opened())

    def jump(self) -> None:
        """Let the clock jump."""
        self.clock.offset = self.chance.choice(JUMPS)
        self.say(self.clock.offset)

    def check(self) -> None:
        """Check all files, by the writer or by a reader."""
        opened = self.chance.choice([self.opened(), *self.readers])
        problems = self.store.check(opened)
        assert problems == [], problems

    def back_up(self) -> None:
        """Back up to an earlier backup or to a new folder, and look at it."""
        if self.chance.random() < 0.3:
            shutil.rmtree(self.backup, ignore_errors=True)
        self.store.back_up(self.chance.choice([self.opened(), *self.readers]), self.backup)
        copied = self.store.open_backup(self.backup)
        self.look(copied)
        assert self.store.check(copied) == []
        copied.close()

    def repair(self) -> None:
        """Repair what is sound, with nobody else there: nothing changes."""
        self.restart()
        self.reopen()
        if self.writer is not None:
            self.writer.close()
            self.writer = None
        lost = self.store.repair(self.root)
        assert lost == [], lost
        self.look(self.opened())


def main(kind: str, seed: int, events: int, folder: Path) -> int:
    """Run a simulation; print how many events of each kind there were, or what went wrong."""
    folder = folder / f"{kind}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    gc.freeze()  # what is imported need not be looked at whenever something is given up
    simulation = Simulation(SIMULATED[kind](), folder, seed)
    began = time.monotonic()
    try:
        simulation.run(events)
    except BaseException:
        SHIM.fault_set(0, 0)
        print("\n".join([f"{kind}, seed {seed}, the last events of {events}:", *simulation.last]))
        print(traceback.format_exc())
        return 1
    print(json.dumps(simulation.counts | {"seconds": time.monotonic() - began}))
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
