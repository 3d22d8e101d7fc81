"""A saved person as the library returns them, each form with its one JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from setnet.library.people.example import Example


@dataclass(frozen=True, slots=True)
class Person:
    """A named person, how many example faces are kept of them, and whether any of these has a picture.

    Attributes
    ----------
    name
        What they are called; `id` stays the same whatever it is.
    aliases
        Other names that find them.
    note
        What the user wants to remember of them.
    cover
        The number of the example whose picture stands for them; None for the oldest that has one.
    change
        The number of the change in the journal that led here, in what a change returns.
    """

    name: str
    examples: int
    added: float
    has_picture: bool
    id: str
    aliases: tuple[str, ...] = ()
    note: str = ""
    cover: int | None = None
    change: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the person as values that JSON can hold; `change` only after a change."""
        facts = asdict(self) | {"aliases": list(self.aliases)}
        if self.change is None:
            del facts["change"]
        return facts


@dataclass(frozen=True, slots=True)
class PersonDetails:
    """A named person with their example faces, and in how many photos of the library they are."""

    person: Person
    photos: int
    examples: Sequence[Example]

    def to_dict(self) -> dict[str, Any]:
        """Return the details as values that JSON can hold; `examples` has each of them."""
        return self.person.to_dict() | {
            "photos": self.photos,
            "examples": [example.to_dict() for example in self.examples],
        }
