"""What people are called: names of every script, their keys, and ids that never change."""

from __future__ import annotations

import re
import secrets
import unicodedata

from setnet.errors import InvalidInputError

_LONGEST = 200
_ID_BYTES = 6
# Zero-width non-joiner and joiner, Mongolian vowel separator: part of how Persian, Hindi and other names are
# spelt, and told from their absence by few.
_JOINERS = "\u200c\u200d\u180e"
_DIRECTIONS = "\u200e\u200f\u061c"  # marks that come along when right-to-left names are copied
_NOT_IN_KEYS = dict.fromkeys(map(ord, _JOINERS + _DIRECTIONS))
_NO_DIRECTIONS = dict.fromkeys(map(ord, _DIRECTIONS))
# Controls, formats such as overrides of direction, halves of pairs, ends of lines and paragraphs. Characters
# that this version of Python does not know are allowed: names are what many new ones are made for.
_REFUSED = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def key_of(name: str) -> str:
    """Return the key under which a name is stored; a file name that is no text gets one nobody has.

    Joiners are left out: names that differ in nothing visible are one name.
    """
    text = name.encode("utf-8", "backslashreplace").decode().translate(_NOT_IN_KEYS)
    return unicodedata.normalize("NFKC", text).casefold().strip()


def checked_name(name: str) -> str:
    r"""Return a name as it is stored; one that is empty, too long or not printable is an error.

    >>> checked_name("  Zoe\u0308 ")
    'Zoë'
    """
    clean = unicodedata.normalize("NFC", name.translate(_NO_DIRECTIONS)).strip().strip(_JOINERS).strip()
    if not clean or len(clean) > _LONGEST or not all(map(_is_printable, clean)):
        raise InvalidInputError(f"name {name!r}: 1 to {_LONGEST} printable characters are expected")
    return clean


def _is_printable(character: str) -> bool:
    code = ord(character)
    is_noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    return character in _JOINERS or not (is_noncharacter or unicodedata.category(character) in _REFUSED)


def new_id() -> str:
    """Return a person's id, which no other has or will have: 12 random hexadecimal digits."""
    return secrets.token_hex(_ID_BYTES)


def is_id(text: str) -> bool:
    """Return whether a text has the form of a person's id.

    >>> is_id("0123456789ab"), is_id("Anna")
    (True, False)
    """
    return re.fullmatch(rf"[0-9a-f]{{{2 * _ID_BYTES}}}", text) is not None
