"""Rebuilds the disk as a power cut at any moment would leave it, from the trace of one undisturbed run.

Written data survives for certain only after an fsync of its file; a file's name, its removal and its renaming
only after an fsync of its folder (a new file's name also with the file itself, as on ext4, xfs and btrfs).
What was not synced may survive or not, write by write.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Disk", "disks"]

ENTRY = struct.Struct("<c7xqqqq")


@dataclass
class File:
    """A file's synced bytes and what was done to it since."""

    synced: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # (offset, data) or (size, None)

    def content(self, chosen: list[tuple[int, bytes | None]]) -> bytes:
        held = bytearray(self.synced)
        for at, data in chosen:
            if data is None:
                held = held[:at].ljust(at, b"\0")
            else:
                held = held.ljust(at, b"\0")
                held[at : at + len(data)] = data
        return bytes(held)

    def sync(self) -> None:
        self.synced = self.content(self.pending)
        self.pending = []


class Disk:
    """Files by inode, and names as they are and as they are durable."""

    def __init__(self, root: Path, base: Path) -> None:
        self.root = str(root)
        self.files: dict[int, File] = {}
        self.names: dict[str, int] = {}
        self.folders: dict[int, str] = {}
        self.all_folders = {self.root}
        for path in sorted(base.rglob("*")):
            if path.is_dir():
                self.all_folders.add(self.root + str(path)[len(str(base)) :])
            else:
                number = path.stat().st_ino
                self.files[number] = File(path.read_bytes())
                self.names[self.root + str(path)[len(str(base)) :]] = number
        self.durable = dict(self.names)

    def apply(self, op: str, inode: int, offset: int, data: bytes, more: bytes) -> None:
        if op in "OT":
            path = data.decode()
            if path.rstrip("/") in self.all_folders:
                self.folders[inode] = path.rstrip("/")
                return
            if self.names.get(path) != inode:
                self.names[path], self.files[inode] = inode, File()
            if op == "T":
                self.files[inode].pending.append((0, None))
        elif op == "W":
            self.files[inode].pending.append((offset, data))
        elif op == "C":
            self.files[inode].pending.append((offset, None))
        elif op == "S" and inode in self.folders:
            folder = self.folders[inode] + "/"
            inside = {
                n
                for n in {*self.names, *self.durable}
                if n.startswith(folder) and "/" not in n[len(folder) :]
            }
            for name in inside:
                self._settle(name)
        elif op == "S":
            self.files[inode].sync()
            for name, number in self.names.items():
                if number == inode and name not in self.durable:
                    self.durable[name] = inode
        elif op == "R":
            self.names[more.decode()] = self.names.pop(data.decode())
        elif op == "U":
            self.names.pop(data.decode(), None)
        elif op == "D":
            self.all_folders.add(data.decode())

    def _settle(self, name: str) -> None:
        if name in self.names:
            self.durable[name] = self.names[name]
        else:
            self.durable.pop(name, None)

    def write(self, to: Path, chance: random.Random | None) -> None:
        """Write the disk after a cut now: only what is durable, or with `chance` also some of the rest."""
        names = self.names if chance and chance.random() < 0.5 else self.durable
        for folder in sorted(self.all_folders):
            (to / folder[len(self.root) + 1 :]).mkdir(parents=True, exist_ok=True)
        for name, number in names.items():
            file = self.files[number]
            kept = [p for p in file.pending if chance and chance.random() < 0.6]
            (to / name[len(self.root) + 1 :]).write_bytes(file.content(kept))


def disks(trace: bytes, disk: Disk) -> Iterator[tuple[Disk, bool]]:
    """Yield the disk after each operation of a trace, and whether the change had returned by then."""
    at, done = 0, False
    while at < len(trace):
        op, inode, offset, length, length2 = ENTRY.unpack_from(trace, at)
        at += ENTRY.size
        data, more = trace[at : at + length], trace[at + length : at + length + length2]
        at += length + length2
        if op == b"!":
            done = True
        else:
            disk.apply(op.decode(), inode, offset, data, more)
        yield disk, done
