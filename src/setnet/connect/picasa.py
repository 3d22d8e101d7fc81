"""Reads the face tags in `.picasa.ini`, the file that Picasa kept in every folder of photos."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from setnet.connect.face_regions import RegionList
from setnet.errors import InvalidInputError

FILE_NAMES = (".picasa.ini", "Picasa.ini")
LARGEST = 32 << 20
_NOBODY = "ffffffffffffffff"  # a face that was found and not named
_FACE = re.compile(r"rect64\(([0-9a-f]{1,16})\),([0-9a-f]{1,16})", re.IGNORECASE)
_CONTACTS = ("contacts", "contacts2")


def picasa_regions(data: bytes) -> dict[str, RegionList]:
    """Return the face regions in a Picasa file by the name of the photo, in lower case."""
    if len(data) > LARGEST:
        raise InvalidInputError(f"larger than {LARGEST >> 20} MB: no file of Picasa's is")
    sections: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for section, key, value in _lines(_decode(data)):
        sections[section][key] = value
    names = {
        key: value.partition(";")[0].strip()
        for section in _CONTACTS
        for key, value in sections.get(section, {}).items()
    }
    return {
        section: _regions(keys["faces"], names)
        for section, keys in sections.items()
        if section not in _CONTACTS and "faces" in keys
    }


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:  # the earliest versions wrote in the code page of Windows
        return data.decode("cp1252", "replace")


def _lines(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield section, key and value of every line that has them; sections and keys in lower case."""
    section = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].lower()
        elif "=" in line:
            key, _, value = line.partition("=")
            yield section, key.strip().lower(), value.strip()


def _regions(faces: str, names: dict[str, str]) -> RegionList:
    found = RegionList("picasa")
    for rectangle, contact in _FACE.findall(faces):
        contact = contact.lower()
        if contact == _NOBODY or contact in names:
            found.add(names.get(contact, ""), *_corners(rectangle))
        else:
            found.problems.append(f"a face is contact {contact}, whose name is not in this file")
    return found


def _corners(digits: str) -> tuple[float, ...]:
    """Return left, top, right and bottom of a `rect64`: 16 bits each, leading zeros left out.

    >>> _corners("80000000ffff8000")[2]
    1.0
    """
    value = int(digits, 16)
    return tuple((value >> shift & 0xFFFF) / 0xFFFF for shift in (48, 32, 16, 0))
