"""The people to look for: the list of names, and the ways in which people write them.

Names are compared without case, accents and possessives; middle names may be missing, given names may be
initials, and the family name may come first.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from setnet.collect.run import CollectRun, Row, Work
from setnet.errors import InvalidInputError
from setnet.library.folder_scan import FolderScan

Form = tuple[str, ...]
COMMA = ","
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
    """A word of a text."""

    key: str  # what it is compared by
    is_capital: bool  # whether it begins with a capital letter, or its script has none
    gap: str  # what stands before it: ``" "``, ``"-"``, ``","``, or ``"."`` for anything that ends a phrase


def split_words(text: str) -> list[Word]:
    """Return the words of a text.

    >>> [word.key for word in split_words("Beyoncé's friend O'Neil, J.-P.")]
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


# Words with which a family name can begin.
_PARTICLES = frozenset(
    ("abu", "al", "ben", "bin", "da", "de", "del", "della", "den", "der", "di", "dos", "du", "el")
) | frozenset(("ibn", "la", "le", "san", "st", "ter", "van", "von", "zu"))
_WITHOUT_PARTS = re.compile(f"[{_SINGLE}]")


def full_form(name: str) -> Form:
    """Return a name as it is compared by; "Last, First" is turned round.

    >>> full_form("Bush, George W.")
    ('george', 'w', 'bush')
    """
    words = split_words(name)
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
    words = [word for word in split_words(name) if word.key not in SUFFIXES]
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
        words = split_words(text)
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


@dataclass(frozen=True, slots=True)
class ListedName:
    """A name of the list, with other names of the same person and where it was read."""

    name: str
    aliases: tuple[str, ...]
    entry: str


def name_rows(run: CollectRun, _: Work) -> Iterator[Row]:
    """Yield a row for each entry of the list: kept, or dropped because it is there twice or has no portraits.

    Folders of portraits whose name is not in the list get a row too.
    """
    folders = _portrait_folders(Path(run.settings.portraits))
    if run.settings.names is None:
        listed = [ListedName(_clean(path.name), (), str(path)) for path in folders.values()]
    else:
        listed = read_names(Path(run.settings.names))
    seen: dict[Form, str] = {}
    used: set[Form] = set()
    for each in listed:
        row: Row = {"entry": each.entry, "name": each.name, "aliases": list(each.aliases)}
        form = full_form(each.name)
        folder = next((f for f in map(full_form, (each.name, *each.aliases)) if f in folders), None)
        if form in seen:
            yield row | {"kept": False, "reason": "listed twice", "detail": f"as {seen[form]}"}
        elif folder is None or folder in used:
            yield row | {"kept": False, "reason": "no folder of portraits"}
        else:
            used.add(folder)
            place = os.fspath(folders[folder])
            yield row | {"kept": True, "folder": place, "files": _digest(place)}
        seen.setdefault(form, each.name)
    for form, path in folders.items():
        if form not in used and form not in seen:
            name = _clean(path.name)
            yield {"entry": str(path), "name": name, "kept": False, "reason": "not in the list of names"}


def read_names(path: Path) -> list[ListedName]:
    """Return the names of a text file: one per line, aliases after ``|``; lines with ``#`` are comments."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path}: byte {error.start} is no UTF-8 text; save the list of names as UTF-8"
        ) from error
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror or error})") from error
    found = []
    for number, line in enumerate(lines, 1):
        name, *aliases = (_clean(part) for part in line.split("|"))
        if name and not name.startswith("#"):
            found.append(ListedName(name, tuple(filter(None, aliases)), f"{path.name}:{number}"))
    if not found:
        raise InvalidInputError(f"{path}: the list of names is empty; write one name per line")
    return found


def _portrait_folders(portraits: Path) -> dict[Form, Path]:
    found: dict[Form, Path] = {}
    for path in sorted(portraits.iterdir()):
        if path.is_dir() and not path.name.startswith(".") and (form := full_form(_clean(path.name))):
            found.setdefault(form, path)
    if not found:
        raise InvalidInputError(
            f"{portraits} has no folders of portraits: expected PORTRAITS/Name/*.jpg, a folder per person"
        )
    return found


def _clean(name: str) -> str:
    return " ".join(name.replace("_", " ").encode("utf-8", "backslashreplace").decode().split())


def _digest(folder: str) -> str:
    """Return what changes when portraits are added, removed or replaced."""
    digest = blake2b(digest_size=8)
    for file in FolderScan([os.fsencode(folder)]).files():
        digest.update(b"%s %d %d\n" % (file.path, file.size, file.mtime_ns))
    return digest.hexdigest()
