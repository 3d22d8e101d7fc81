"""Files of people, changed as JSON and as bytes; what is accepted is imported, undone and exported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from setnet.library import Example, Library
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import json_bytes, mutated_bytes, mutated_json
from tests.fuzz.synthetic_library import fill_library
from tests.fuzz.target import Function, attempt
from tests.fuzz.targets.photo_files import photos

WORDS = [
    "setnet people",
    "yes",
    "no",
    "portrait",
    "0" * 32,
    "0123456789ab",
    "/9j/",
    [0, 0, 1, 1],
    128,
    "Anna",
]


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that imports a changed file into a library of a few people and photos."""
    (folder / "photos").mkdir()
    with Library.create(folder / "library") as library:
        fill_library(library, folder / "photos", photos())
        library._database.connection.execute("PRAGMA synchronous = OFF")
        people, vectors = library.people, np.eye(3, library.dim, dtype=np.float32)
        people.add("Ben", [Example(row, "/ben.jpg", picture=b"\xff\xd8\xff") for row in vectors])
        people.edit("Ben", aliases=["Benny"], note="a note", cover=people.examples("Ben")[0].number)
        people.confirm("Ben", "2", 0)
        people.reject("Anna", "3", 1)
        sound = json.loads(library.people.to_file().to_bytes())
        others = json.loads(json.dumps(sound))
        for number, person in enumerate(others["people"]):
            person |= {"id": f"{number:012x}", "name": f"{person['name']} {number}"}
        before = library.people.to_file().to_bytes()

        def run(data: bytes) -> None:
            choices = Choices(data)
            changed = json_bytes(mutated_json(choices, choices.pick((sound, others)), WORDS))
            if choices.once_in(4):
                changed = mutated_bytes(choices, changed)
            use = bool(choices.below(2))

            def imported() -> None:
                done = library.people.import_file(changed, descriptors=use)
                assert library.people.import_file(changed, descriptors=use).change is None, "imported twice"
                if done.change is not None:
                    people.undo(done.change)

            attempt(imported)
            assert library.people.to_file().to_bytes() == before, "an import that was not undone, or refused"

        yield run
