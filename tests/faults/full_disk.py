"""Runs a scenario's change on a disk with too little space, for every amount from none to enough.

Started as ``python -m tests.faults.full_disk SCENARIO STEP FOLDER`` in a mount namespace of its own (`unshare
-rm`), where STEP is in pages. Prints the number of trials, or fails with what was lost.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setnet.errors import SetNetError
from tests.faults.scenarios import SCENARIOS

PAGE = 4096
DISK_BYTES = 32 << 20
ENOUGH = 3  # sizes in a row that suffice: no larger one will fail
SLACK = 64 * PAGE  # files may be a little larger than those of an undisturbed change


class SmallDisk:
    """A tmpfs of a known size, filled up by one file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self._filler = folder, folder / "root", folder / "filler"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "setnet-test", str(folder)]
        subprocess.run(command, check=True)

    def used(self) -> int:
        info = os.statvfs(self.folder)
        return (info.f_blocks - info.f_bfree) * info.f_frsize

    def start(self, base: Path, free: int) -> None:
        """Put a copy of the base on the disk and leave it so many free bytes."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(base, self.root)
        with open(self._filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, DISK_BYTES - self.used() - free)

    def give_space(self) -> None:
        self._filler.unlink()


def change(name: str, root: Path) -> bool:
    """Make the change; return whether it was acknowledged. Errors of others get out."""
    try:
        SCENARIOS[name].change(root)
    except SetNetError:
        return False
    return True


def fill_up(name: str, step: int, folder: Path) -> int:
    """Try all amounts of free space; return how many."""
    scenario, disk, base = SCENARIOS[name], SmallDisk(folder / "disk"), folder / "base"
    base.mkdir()
    scenario.make(base)
    disk.start(base, DISK_BYTES // 2)
    disk.give_space()
    before, most = scenario.contents(disk.root), disk.used()
    disk.start(base, DISK_BYTES // 2)
    disk.give_space()
    assert change(name, disk.root)
    after, most = scenario.contents(disk.root), max(most, disk.used())
    enough = trials = 0
    while enough < ENOUGH:
        free = trials * step * PAGE
        disk.start(base, free)
        is_done = change(name, disk.root)
        enough = enough + 1 if is_done else 0
        disk.give_space()
        if trials % 2:
            is_done = change(name, disk.root)
            assert is_done, f"{name} with {free} bytes: refused again when there was space"
        contents = scenario.contents(disk.root)
        assert contents in ([after] if is_done else [before, after]), f"{name} with {free} bytes: lost"
        kept = disk.used() - most
        assert kept <= SLACK, f"{name} with {free} bytes: {kept} more than needed stay in use"
        trials += 1
    return trials


if __name__ == "__main__":
    print(fill_up(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
