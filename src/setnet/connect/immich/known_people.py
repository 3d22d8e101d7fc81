"""The people that Immich knows, found by name or id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from setnet.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class ImmichPerson:
    """A person of Immich: the id, the names that users gave, and in how many photos they are.

    ``hidden`` says that a user hid them from Immich's list of people.
    """

    id: str
    names: tuple[str, ...] = ()
    hidden: bool = False
    photos: int = 0

    @property
    def name(self) -> str:
        """What the person is called; the id of one without a name."""
        return " / ".join(self.names) or self.id

    def to_dict(self) -> dict[str, Any]:
        """Return the person for JSON."""
        return {**asdict(self), "name": self.name}


def person_called(people: Iterable[ImmichPerson], text: str) -> ImmichPerson:
    """Return the one person with an id or a name; upper and lower case are alike.

    >>> person_called([ImmichPerson("8f1c", ("Anna",)), ImmichPerson("77aa", ("Ben",))], "anna").id
    '8f1c'
    """
    known = list(people)
    key = text.strip().casefold()
    found = [p for p in known if p.id == key] or [
        p for p in known if key in {name.strip().casefold() for name in p.names}
    ]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(f"{p.id} ({p.photos} photos)" for p in found)
        raise InvalidInputError(f"{len(found)} people are called {text!r}: name one by id, {ids}")
    names = ", ".join(repr(name) for p in known for name in p.names if not p.hidden)
    shown = f"people are {names[:400]}" if names else "Immich has named nobody yet"
    raise InvalidInputError(f"Immich knows nobody called {text!r}: {shown} (`setnet immich people`)")


def people_from(stored: Iterable[Mapping[str, Any]], photos: Mapping[str, int]) -> list[ImmichPerson]:
    """Return people as `to_dict` wrote them, with the number of their photos, most photos first."""
    people = [
        ImmichPerson(
            str(p["id"]), tuple(map(str, p["names"])), bool(p["hidden"]), photos.get(str(p["id"]), 0)
        )
        for p in stored
    ]
    return sorted(people, key=lambda p: (-p.photos, p.name.casefold(), p.id))
