"""Finds the names of a list in texts, as people write them, and tells which are ambiguous."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from setnet.collect.names.name_forms import COMMA, Form, derived_forms, full_form
from setnet.collect.names.text_words import Word, words_of


@dataclass(frozen=True, slots=True)
class FoundNames:
    """Names found in a text, in order of appearance, and words that could mean several people."""

    names: tuple[str, ...]
    ambiguous: tuple[str, ...]


class NameMatcher:
    """Finds names in texts.

    Case, accents and possessives do not matter; middle names may be missing, given names be initials, and the
    family name may come first, before a comma. What could be one of several people is none of them.

    Parameters
    ----------
    aliases
        For each name, the other names of the same person.

    Examples
    --------
    >>> matcher = NameMatcher({"George W Bush": (), "Beyoncé": ("Queen B",)})
    >>> matcher.find("BEYONCE's party; Bush, George and others").names
    ('Beyoncé', 'George W Bush')
    """

    def __init__(self, aliases: Mapping[str, Iterable[str]]) -> None:
        self.names = tuple(aliases)
        full: dict[Form, set[str]] = defaultdict(set)
        derived: dict[Form, set[str]] = defaultdict(set)
        for name, others in aliases.items():
            for written in (name, *others):
                full[full_form(written)].add(name)
                for form in derived_forms(written):
                    derived[form].add(name)
        # what is somebody's full name is not read as another's shortened one
        owners = {form: names for form, names in derived.items() if form not in full} | full
        self._owner = {form: next(iter(names)) for form, names in owners.items() if len(names) == 1}
        self._shared = {form: frozenset(names) for form, names in owners.items() if len(names) > 1}
        self._by_first: dict[str, list[Form]] = defaultdict(list)
        for form in sorted(owners, key=lambda form: (-len(form), form)):  # longest first
            if form:
                self._by_first[form[0]].append(form)

    def ambiguous_forms(self) -> dict[str, tuple[str, ...]]:
        """Return what could mean several people of the list."""
        return {" ".join(form): tuple(sorted(names)) for form, names in sorted(self._shared.items())}

    def find(self, text: str) -> FoundNames:
        """Return the names in a text."""
        words = words_of(text)
        has_case = any(word.is_capital for word in words)
        found: dict[str, None] = {}
        unclear: dict[str, None] = {}
        at = 0
        while at < len(words):
            form = next(
                (f for f in self._by_first.get(words[at].key, ()) if _is_at(f, words, at, has_case)), None
            )
            if form is None:
                at += 1
                continue
            if form in self._owner:
                found[self._owner[form]] = None
            else:
                unclear[" ".join(form)] = None
            at += len(form) - (COMMA in form)
        return FoundNames(tuple(found), tuple(unclear))


def _is_at(form: Form, words: Sequence[Word], at: int, has_case: bool) -> bool:
    """Return whether a form stands in a text at a word, written as a name is."""
    parts = [key for key in form if key != COMMA]
    if at + len(parts) > len(words):
        return False
    turned = form.index(COMMA) if COMMA in form else 0
    for number, key in enumerate(parts):
        word = words[at + number]
        if word.key != key or (has_case and not word.is_capital and (len(key) == 1 or len(parts) == 1)):
            return False
        expected = (COMMA,) if turned and number == turned else (" ", "-")
        if number and word.gap not in expected:
            return False
    return not turned or not _goes_on(words, at, at + len(parts))


def _goes_on(words: Sequence[Word], start: int, end: int) -> bool:
    """Return whether capitals go on before or after: "Ann Cole, Ben Dole" has no "Cole, Ben" in it."""
    before = start > 0 and words[start].gap in (" ", "-") and words[start - 1].is_capital
    after = end < len(words) and words[end].gap in (" ", "-") and words[end].is_capital
    return before or after
