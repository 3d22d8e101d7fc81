"""Words of a text as names are compared by: without case, accents, possessives and full stops."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_SINGLE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # scripts without spaces: each character is a word
_QUOTE = "['\u2019\u02bc]"  # as typed, as printed, and as a letter
_WORD = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+(?:{_QUOTE}[^\W_{_SINGLE}]+)*")
_POSSESSIVE = re.compile(rf"{_QUOTE}s$")
# Letters that Unicode does not take apart into a plain one and an accent.
_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "\u0131": "i"}
    | dict.fromkeys("'\u2019\u02bc", "")
)
_BREAKS = frozenset(';:!?()[]{}|/\\\n\r\t"“”„«»•\u2013\u2014=<>*')
_ABBREVIATED = frozenset(("jr", "sr", "st", "dr", "mr", "mrs", "ms", "prof", "gen", "sen", "gov", "rev"))
SUFFIXES = frozenset(("jr", "sr", "ii", "iii", "iv"))


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text.

    Attributes
    ----------
    key
        What it is compared by.
    is_capital
        Whether it begins with a capital letter, or its script has none.
    gap
        What stands before it: ``" "``, ``"-"``, ``","``, or ``"."`` for anything that ends a phrase.
    """

    key: str
    is_capital: bool
    gap: str


def words_of(text: str) -> list[Word]:
    """Return the words of a text.

    >>> [word.key for word in words_of("Beyoncé's friend O'Neil, J.-P.")]
    ['beyonce', 'friend', 'oneil', 'j', 'p']
    """
    text = unicodedata.normalize("NFC", text)
    words: list[Word] = []
    end = 0
    for found in _WORD.finditer(text):
        key = _key(found.group())
        if key:
            gap = _gap(text[end : found.start()], words[-1].key if words else "", key)
            first = found.group()[0]
            words.append(Word(key, first.isupper() or not first.islower(), gap))
            end = found.end()
    return words


def _key(word: str) -> str:
    word = _POSSESSIVE.sub("", word).casefold().translate(_LETTERS)
    parts = unicodedata.normalize("NFKD", word)
    return "".join(c for c in parts if not unicodedata.combining(c))


def _gap(between: str, before: str, after: str) -> str:
    if not before or not _BREAKS.isdisjoint(between):
        return "."
    if "." in between and not (len(before) == 1 or before in _ABBREVIATED):
        return "."
    if "," in between:
        return " " if after in SUFFIXES else ","
    return "-" if "-" in between else " "
