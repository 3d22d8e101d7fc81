"""Rebuilds the disk as a power cut at any moment would leave it, from the trace of one undisturbed run.

Written data survives for certain only after an fsync of its file; a file's name, its removal and its renaming
only after an fsync of its folder (a new file's name also with the file itself, and a new folder with anything
in it, as on ext4, xfs and btrfs). What was not synced may survive or not, write by write, cut at a sector.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Disk", "disks"]

ENTRY = struct.Struct("<c7xqqqq")
SECTOR = 512  # bytes that a disk writes whole
Write = tuple[int, bytes | None]  # (offset, data), or (size, None) for a truncation


@dataclass
class File:
    """A file's synced bytes and what was done to it since."""

    synced: bytes = b""
    pending: list[Write] = field(default_factory=list)

    def content(self, chosen: list[Write]) -> bytes:
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


@dataclass(frozen=True)
class Move:
    """A folder that was renamed with all that is in it."""

    old: str
    new: str

    def of(self, path: str) -> str:
        inside = path == self.old or path.startswith(self.old + "/")
        return self.new + path[len(self.old) :] if inside else path

    def of_names(self, names: dict[str, int]) -> dict[str, int]:
        return {self.of(name): number for name, number in names.items()}

    def of_folders(self, folders: set[str]) -> set[str]:
        return {self.of(folder) for folder in folders}


class Disk:
    """Files by a number of their own, and names as they are and as they are durable."""

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
        self.current = {number: number for number in self.files}  # of inodes, which are used again
        self.durable = dict(self.names)
        self.durable_folders = set(self.all_folders)
        self.moves: list[Move] = []  # of folders, not yet durable

    def apply(self, op: str, inode: int, offset: int, data: bytes, more: bytes) -> None:
        if op in "OT":
            path = data.decode()
            if path.rstrip("/") in self.all_folders:
                self.folders[inode] = path.rstrip("/")
                return
            self.folders.pop(inode, None)
            if path not in self.names or self.names[path] != self.current.get(inode):
                number = self.current[inode] = -len(self.files) - 1  # no inode, so never given before
                self.names[path], self.files[number] = number, File()
            if op == "T":
                self.files[self.current[inode]].pending.append((0, None))
        elif op == "W":
            self.files[self.current[inode]].pending.append((offset, data))
        elif op == "C":
            self.files[self.current[inode]].pending.append((offset, None))
        elif op == "S" and inode in self.folders:
            folder = self.folders[inode]
            for move in [m for m in self.moves if folder in (parent(m.old), parent(m.new))]:
                self.durable, self.durable_folders = (
                    move.of_names(self.durable),
                    move.of_folders(self.durable_folders),
                )
                self.moves.remove(move)
            self._keep_folder(folder)
            self.durable_folders |= {f for f in self.all_folders if parent(f) == folder}
            for name in [n for n in {*self.names, *self.durable} if parent(n) == folder]:
                self._settle(name)
        elif op == "S":
            synced = self.current[inode]
            self.files[synced].sync()
            for name, number in self.names.items():
                if number == synced and name not in self.durable:
                    self.durable[name] = synced
                    self._keep_folder(parent(name))
        elif op == "R" and data.decode() in self.all_folders:
            move = Move(data.decode(), more.decode())
            self.names, self.all_folders = move.of_names(self.names), move.of_folders(self.all_folders)
            self.folders = {number: move.of(path) for number, path in self.folders.items()}
            self.moves.append(move)
        elif op == "R":
            self.names[more.decode()] = self.names.pop(data.decode())
        elif op == "L":
            self.names[more.decode()] = self.names[data.decode()]
        elif op == "U":
            self.names.pop(data.decode(), None)
            self.all_folders.discard(data.decode())
        elif op == "D":
            self.all_folders.add(data.decode())

    def _keep_folder(self, folder: str) -> None:
        while len(folder) > len(self.root):
            self.durable_folders.add(folder)
            folder = parent(folder)

    def _settle(self, name: str) -> None:
        if name in self.names:
            self.durable[name] = self.names[name]
        else:
            self.durable.pop(name, None)

    def write(self, to: Path, chance: random.Random | None) -> None:
        """Write the disk after a cut now: only what is durable, or with `chance` also some of the rest."""
        is_lucky = chance is not None and chance.random() < 0.5
        names = self.names if is_lucky else self.durable
        for folder in sorted(self.all_folders if is_lucky else self.durable_folders):
            (to / folder[len(self.root) + 1 :]).mkdir(parents=True, exist_ok=True)
        for name, number in names.items():
            file = self.files[number]
            content = file.content(survivors(file.pending, chance) if chance else [])
            (to / name[len(self.root) + 1 :]).write_bytes(content)


def survivors(pending: list[Write], chance: random.Random) -> list[Write]:
    """Return some of the writes that were not synced, a few of them cut at a sector."""
    kept: list[Write] = []
    for at, data in pending:
        if chance.random() < 0.6:
            if data and chance.random() < 0.2:
                data = data[: chance.randrange(len(data)) // SECTOR * SECTOR]
            kept.append((at, data))
    return kept


def parent(path: str) -> str:
    """Return the folder of a path."""
    return path.rpartition("/")[0]


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
