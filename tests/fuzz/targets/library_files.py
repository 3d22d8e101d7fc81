"""Damaged databases, write-ahead logs and commit records of a library; it is opened, searched and changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from setnet.library import Example, Library
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import mutated_bytes
from tests.fuzz.synthetic_library import fill_library
from tests.fuzz.target import Function, attempt
from tests.fuzz.targets.photo_files import photos


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that damages a library's own files, its index left aside, and uses it."""
    root, pictures = folder / "library", folder / "photos"
    pictures.mkdir()
    with Library.create(root) as library:
        fill_library(library, pictures, photos())
        library.people.add("Ben", [Example(np.ones(library.dim, np.float32))])
        while_open = _files(root)
    states = [_files(root), while_open]

    def run(data: bytes) -> None:
        choices = Choices(data)
        files = choices.pick(states)
        for path in root.iterdir():
            if path.is_file() and path.name not in files:
                path.unlink()
        for name, content in files.items():
            (root / name).write_bytes(content)
        name = choices.pick(sorted(files))
        (root / name).write_bytes(mutated_bytes(choices, files[name]))
        attempt(lambda: _use(choices, root, pictures))

    before = os.umask(0o077)  # a library's files are its owner's alone, and setnet says so when they are not
    try:
        yield run
    finally:
        os.umask(before)


def _files(root: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in root.iterdir() if p.is_file() and not p.name.endswith("-shm")}


def _use(choices: Choices, root: Path, pictures: Path) -> None:
    with Library.open(root) as library:
        vector = np.ones(library.dim, np.float32)
        uses: list[Callable[[], object]] = [
            lambda: library.search(["Anna"], k=5),
            lambda: library.search([vector], k=5).to_dict(),
            lambda: [photo.to_dict() for photo in library.photos.all_photos()],
            lambda: library.status().to_dict(),
            lambda: [asdict(person) for person in library.people],
            lambda: library.people.photos("Ben"),
            lambda: library.photos.get("2").to_dict(),
            library.check,
        ]
        for use in uses:
            attempt(use)
        if choices.once_in(8):
            attempt(lambda: library.people.rename("Ben", "Cleo"))
            attempt(lambda: library.people.remove("Anna", for_good=True))
            attempt(lambda: library.forget([pictures / "1.jpg"]))
