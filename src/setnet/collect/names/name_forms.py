"""The ways in which people write a name: in full, without middle names, with initials, family name first."""

from __future__ import annotations

import re

from setnet.collect.names.text_words import SUFFIXES, Word, words_of

Form = tuple[str, ...]
COMMA = ","
# Words with which a family name can begin.
_PARTICLES = frozenset(
    ("abu", "al", "ben", "bin", "da", "de", "del", "della", "den", "der", "di", "dos", "du", "el")
) | frozenset(("ibn", "la", "le", "san", "st", "ter", "van", "von", "zu"))
_WITHOUT_PARTS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def full_form(name: str) -> Form:
    """Return a name as it is compared by; "Last, First" is turned round.

    >>> full_form("Bush, George W.")
    ('george', 'w', 'bush')
    """
    words = words_of(name)
    commas = [number for number, word in enumerate(words) if word.gap == COMMA]
    if len(commas) == 1:
        words = words[commas[0] :] + words[: commas[0]]
    return tuple(word.key for word in words)


def derived_forms(name: str) -> set[Form]:
    """Return the other ways to write a name: middle names and suffix left out, initials, family name first.

    >>> sorted(" ".join(form) for form in derived_forms("Ann B. Cole"))
    ['a b cole', 'a cole', 'ann cole', 'cole , a', 'cole , a b', 'cole , ann', 'cole , ann b']
    """
    if _WITHOUT_PARTS.search(name):
        return set()
    full = full_form(name)
    words = [word for word in words_of(name) if word.key not in SUFFIXES]
    if any(word.gap == COMMA for word in words):  # already turned round
        keys = [key for key in full if key not in SUFFIXES]
        words = [Word(key, True, " ") for key in keys]
    if len(words) < 2:
        return {form for form in (tuple(word.key for word in words),) if form and form != full}
    start = _family_start(words)
    first, *middle = (word.key for word in words[:start])
    family = tuple(word.key for word in words[start:])
    givens = {(first, *middle), (first,), (first, *(m[0] for m in middle))}
    givens |= {(first[0],), (first[0], *(m[0] for m in middle))}
    forms = {(*given, *family) for given in givens} | {(*family, COMMA, *given) for given in givens}
    return forms - {full}


def _family_start(words: list[Word]) -> int:
    """Return where the family name begins: at a particle, at the first part of "Zeta-Jones", or last."""
    for number, word in enumerate(words[1:-1], 1):
        if word.key in _PARTICLES:
            return number
    start = len(words) - 1
    while start > 1 and words[start].gap == "-":
        start -= 1
    return start
