"""The interface of a source of photos with texts: a folder of one's own, or a web archive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

_PHRASE = re.compile(r'"([^"]*)"|(\S+)')


@dataclass(frozen=True, slots=True)
class CaptionedPhoto:
    """A photo's file and the text that came with it."""

    photo: str
    text: str


class PhotoSource(Protocol):
    """Where photos are searched by words, as in a search engine.

    Write one for an archive on the web: `search` asks it, stores the photos that it finds in a folder, and
    returns their files with the texts; pass it to `run_step` or `run_all`. Nothing else of `setnet collect`
    knows where photos come from.
    """

    def search(
        self, words: str, *, without: Sequence[str] = (), limit: int = 100
    ) -> Iterable[CaptionedPhoto]:
        """Return photos whose text fits, best first.

        Parameters
        ----------
        words
            As typed into a search engine: ``"Ann Cole" OR "Cole, Ann" and``. Of phrases in quotes joined by
            OR one must be there; phrases that are not joined must all be there. Other words, such as this
            "and", only change the order.
        without
            Phrases of which none may be there.
        limit
            How many photos at most.
        """
        ...


def parsed_words(words: str) -> tuple[list[list[str]], list[str]]:
    """Return the phrases of a search, those joined by OR together, and the words that only rank.

    >>> parsed_words('"Ann Cole" OR "Cole, Ann" "Ben Dole" and')
    ([['Ann Cole', 'Cole, Ann'], ['Ben Dole']], ['and'])
    """
    needed: list[list[str]] = []
    others: list[str] = []
    joined = False
    for found in _PHRASE.finditer(words):
        phrase, word = found.groups()
        if phrase is None:
            joined = word == "OR" and bool(needed)
            if not joined:
                others.append(word)
        else:
            if joined:
                needed[-1].append(phrase)
            else:
                needed.append([phrase])
            joined = False
    return needed, others
