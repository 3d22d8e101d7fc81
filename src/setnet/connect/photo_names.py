"""Names of who is in a photo without saying where: from Google Takeout, XMP, captions and keywords.

Google Takeout has a JSON file beside each photo: `IMG.jpg.json` once, `IMG.jpg.supplemental-metadata.json`
today, both shortened where the name would be longer than 51 characters. The number of a second photo of a
name is in brackets, at the end of the JSON's name: `IMG(1).jpg` has `IMG.jpg(1).json`.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setnet.errors import InvalidInputError

LARGEST_JSON = 4 << 20
_SUFFIX = ".supplemental-metadata"
_SHORTENED = 50  # characters of a JSON's name from which on it may be cut; it has 51 at most
_NUMBER = re.compile(r"\((\d{1,4})\)$")
_WORDS = re.compile(r"\w+(?:['\u2019]\w+)*")


@dataclass(slots=True)
class PhotoNames:
    """Who is said to be in a photo: names, and texts in which names may be."""

    names: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, other: PhotoNames) -> None:
        """Add what another file says of the photo."""
        self.names += other.names
        self.texts += other.texts

    def known(self, people: Mapping[tuple[str, ...], str]) -> list[str]:
        """Return the names, and those of known people in the texts; each once."""
        found = {name.casefold(): name for name in self.names}
        for name in people_in_text(self.texts, people):
            found.setdefault(name.casefold(), name)
        return list(found.values())


def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a name as they are compared.

    >>> name_words("Zoë O\u2019Neil-Smith")
    ('zoë', "o'neil", 'smith')
    """
    text = unicodedata.normalize("NFKC", name).casefold().replace("\u2019", "'")
    return tuple(_WORDS.findall(text))


def people_in_text(texts: Iterable[str], people: Mapping[tuple[str, ...], str]) -> list[str]:
    """Return the people, by the words of their names, who are named in captions or keywords.

    A word of a script with capitals is a name only with one.

    >>> people_in_text(["Anna and ben at the lake"], {("anna",): "Anna", ("ben",): "Ben"})
    ['Anna']
    """
    longest = max(map(len, people), default=0)
    found = []
    for text in texts:
        spelt = _WORDS.findall(unicodedata.normalize("NFKC", text))
        words = [name_words(word) for word in spelt]
        at = 0
        while at < len(spelt):
            for length in range(min(longest, len(spelt) - at), 0, -1):
                key = tuple(part for word in words[at : at + length] for part in word)
                if key in people and not any(word[0].islower() for word in spelt[at : at + length]):
                    found.append(people[key])
                    at += length - 1
                    break
            at += 1
    return found


def read_takeout(data: bytes) -> PhotoNames | None:
    """Return what a JSON file of Google Takeout says of a photo; None for another JSON."""
    try:
        said: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise InvalidInputError("is no JSON, or nested too deeply") from None
    if not isinstance(said, dict) or not isinstance(said.get("title"), str):
        return None
    people = said.get("people", [])
    people = people if isinstance(people, list) else []
    names = [person.get("name") for person in people if isinstance(person, dict)]
    text = said.get("description")
    return PhotoNames(
        [name.strip() for name in names if isinstance(name, str) and name.strip()],
        [text] if isinstance(text, str) and text.strip() else [],
    )


def takeout_files(folder: Path) -> list[str]:
    """Return the names of the JSON files in a folder; none where it cannot be read."""
    try:
        return sorted(name for name in os.listdir(folder) if name.lower().endswith(".json"))
    except OSError:
        return []


def takeout_file(photo: str, files: Iterable[str]) -> str | None:
    """Return which of a folder's JSON files is about a photo.

    >>> takeout_file("IMG_1.jpg", ["IMG_1.jpg.json", "IMG_1.jpg(1).json"])
    'IMG_1.jpg.json'
    >>> takeout_file("IMG_1(1).jpg", ["IMG_1.jpg.supplemental-metadata(1).json"])
    'IMG_1.jpg.supplemental-metadata(1).json'
    >>> takeout_file("IMG_20190714_183000_with_a_long_name.jpg", ["IMG_20190714_183000_with_a_long_name.jpg.suppl.json"])
    'IMG_20190714_183000_with_a_long_name.jpg.suppl.json'
    >>> takeout_file("IMG_1-edited.jpg", ["IMG_1.jpg.json", "IMG_2.jpg.json"])
    'IMG_1.jpg.json'
    """  # noqa: E501
    stem, suffix = os.path.splitext(photo)
    numbered = _NUMBER.search(stem)
    number = numbered[1] if numbered else ""
    plain = (stem[: numbered.start()] if numbered else stem) + suffix
    edited = re.sub(r"-[^\W\d_]+$", "", os.path.splitext(plain)[0]) + suffix  # in the language of the account
    candidates = {}
    for file in files:
        base = file[: -len(".json")]
        found = _NUMBER.search(base)
        candidates[file] = (base[: found.start()], found[1]) if found and found[1] == number else (base, "")
    for name, counted in ((plain, number), (photo, ""), (edited, number)):
        fits = [
            file
            for file, (base, its) in candidates.items()
            if its == counted
            and (name + _SUFFIX).startswith(base)
            and (len(base) >= len(name) or len(file) >= _SHORTENED)
        ]
        if fits:
            return max(fits, key=len)
    return None
