"""A photo of Immich that a search found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ImmichHit:
    """A photo with its score and who is in it.

    Attributes
    ----------
    id
        Immich's id of the photo.
    score
        About the number of wanted people in it.
    people
        The wanted people found, by name; one that Immich does not name there, but whose face is alike, has a
        question mark.
    file, taken
        The file's name, and when it was taken (ISO, the camera's clock; empty where that is not known).
    link
        Where Immich's page shows the photo.
    """

    id: str
    score: float
    people: tuple[str, ...]
    file: str
    taken: str
    link: str

    def to_dict(self) -> dict[str, Any]:
        """Return the hit for JSON, its score rounded to six digits."""
        return {**asdict(self), "score": round(self.score, 6)}


def link_to(photo: str, base: str) -> str:
    """Return the address of a photo on Immich's page; its path alone without a base.

    >>> link_to("77aa", "https://photos.example/")
    'https://photos.example/photos/77aa'
    """
    return f"{base.rstrip('/')}/photos/{photo}"
