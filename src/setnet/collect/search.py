"""Who is together, and the photos of each pair ("Query selection" and "Image download" of section 4).

The archive's captions are searched as the paper searched the web: SQLite's FTS5 ranks and excludes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import gettempdir

from setnet.collect.faces import known_names
from setnet.collect.names import COMMA, NameMatcher, derived_forms, full_form, split_words
from setnet.collect.run import CollectRun, Row, Work
from setnet.durable import storage_errors, transaction

_PLACE = Path(gettempdir())


class CaptionArchive:
    """Photos of an archive by the words of their captions, searched as in a search engine.

    Words are indexed as names are compared, without case, accents and possessives. BM25 of the names and of
    the preferred words orders the photos; equal ones come in the order of the archive.
    """

    def __init__(self, captions: Iterable[tuple[str, str]]) -> None:
        self._db = sqlite3.connect("", isolation_level=None)  # a file of SQLite's own, which nobody else sees
        with storage_errors(_PLACE), transaction(self._db):
            self._db.execute("CREATE TABLE photos (id INTEGER PRIMARY KEY, photo BLOB, text TEXT)")
            self._db.execute("CREATE VIRTUAL TABLE words USING fts5(keys, content='')")
            for number, (photo, text) in enumerate(captions, 1):
                stored = (number, photo.encode("utf-8", "surrogatepass"), text)
                self._db.execute("INSERT INTO photos VALUES (?, ?, ?)", stored)
                keys = " ".join(word.key for word in split_words(text))
                self._db.execute("INSERT INTO words (rowid, keys) VALUES (?, ?)", (number, keys))

    def __enter__(self) -> CaptionArchive:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @classmethod
    def of(cls, run: CollectRun) -> CaptionArchive:
        """Return the archive of a run's captions."""
        return cls((row["photo"], row["text"]) for row in run.manifest("captions").kept_rows())

    def search(
        self,
        people: Sequence[Sequence[str]],
        *,
        prefer: Sequence[str] = (),
        without: Sequence[str] = (),
        limit: int = 100,
    ) -> Iterator[tuple[str, str]]:
        """Yield photos whose caption names all of some people, each with its caption, best first.

        `people` has for each person the ways to write the name, `prefer` words that only change the order
        (the "and" of "Ann Cole and"), and `without` phrases that must not be in the caption.
        """
        groups = [any_of for ways in people if (any_of := _match_any(ways))]
        if not groups:
            return
        if words := _match_any(prefer):  # true for every photo that has the names; the words add to its rank
            groups.append(f"({groups[0]} OR {words})")
        query = " AND ".join(groups)
        if excluded := _match_any(without):
            query = f"({query}) NOT {excluded}"
        sql = """SELECT photo, text FROM words JOIN photos ON photos.id = words.rowid
                 WHERE words MATCH ? ORDER BY rank, words.rowid LIMIT ?"""
        with storage_errors(_PLACE), closing(self._db.execute(sql, (query, limit))) as rows:
            for photo, text in rows:
                yield photo.decode("utf-8", "surrogatepass"), text


def _match_any(phrases: Sequence[str]) -> str:
    """Return phrases of which one must be there, in FTS5's language; empty when there are none."""
    keys = (" ".join(word.key for word in split_words(phrase)) for phrase in phrases)
    found = [f'"{phrase}"' for phrase in keys if phrase]
    return f"({' OR '.join(found)})" if found else ""


SEARCH_LIMIT = 100  # photos that a search returns at most


def pair_rows(run: CollectRun, work: Work) -> Iterator[Row]:
    """Yield a row per person of the list with the companions found in the first and the second round.

    The first round searches for "<person> and" and looks for other names of the list in the texts; the second
    excludes those found, so that rarer companions come up. There is no third: the paper found next to
    nothing new in it.
    """
    names = known_names(run)
    matcher = NameMatcher(names)

    def find(archive: CaptionArchive, seed: str, without: Sequence[str]) -> list[str]:
        found: dict[str, None] = {}
        ways = written_forms(seed, names[seed])
        for _, text in archive.search([ways], prefer=["and"], without=without, limit=SEARCH_LIMIT):
            seen = matcher.find(text)
            ambiguous.update(dict.fromkeys(seen.ambiguous))
            if seed in seen.names:
                found |= dict.fromkeys(name for name in seen.names if name != seed)
        return list(found)

    with CaptionArchive.of(run) as archive:
        for seed in names:
            if seed in work.done:
                continue
            ambiguous: dict[str, None] = {}
            first = find(archive, seed, ())
            excluded = [written for friend in first for written in (friend, *names[friend])]
            second = [name for name in find(archive, seed, excluded) if name not in first] if first else []
            row: Row = {"seed": seed, "first": first, "second": second, "ambiguous": list(ambiguous)}
            yield row | ({"kept": True} if first else {"kept": False, "reason": "no companions"})


def name_pairs(run: CollectRun) -> list[tuple[str, str]]:
    """Return the pairs found, each once, in order of names."""
    found = set()
    for row in run.manifest("pairs").kept_rows():
        for friend in (*row["first"], *row["second"]):
            found.add((min(row["seed"], friend), max(row["seed"], friend)))
    return sorted(found)


def written_forms(name: str, aliases: Sequence[str]) -> list[str]:
    """Return the ways to write a name.

    >>> written_forms("Ann Cole", [])
    ['ann cole', 'a cole', 'cole, a', 'cole, ann']
    """
    forms: dict[str, None] = {}
    for written in (name, *aliases):
        for form in (full_form(written), *sorted(derived_forms(written))):
            forms[" ".join(form).replace(f" {COMMA}", COMMA)] = None
    return list(forms)


def photo_rows(run: CollectRun, _: Work) -> Iterator[Row]:
    """Yield a row per photo that a pair's search found: its text, and the names it was searched for.

    A photo is kept when its text has both names of some pair that found it: a text with one of the names
    comes with a photo of one person. `query` has the names of the pairs that passed. Photos of the archive
    that no search found get a row too.
    """
    names = known_names(run)
    found: dict[str, list[tuple[str, str]]] = {}
    texts: dict[str, str] = {}
    with CaptionArchive.of(run) as archive:
        for pair in name_pairs(run):
            people = [written_forms(name, names[name]) for name in pair]
            for photo, text in archive.search(people, limit=SEARCH_LIMIT):
                found.setdefault(photo, []).append(pair)
                texts[photo] = text
    matcher = NameMatcher(names)
    for path in sorted(found):
        yield _photo_row(path, texts[path], found[path], matcher)
    for row in run.manifest("captions").kept_rows():
        if row["photo"] not in found:
            yield {"photo": row["photo"], "kept": False, "reason": "found by no pair"}


def _photo_row(photo: str, text: str, pairs: Sequence[tuple[str, str]], matcher: NameMatcher) -> Row:
    names = matcher.find(text).names
    passed = [pair for pair in pairs if set(pair) <= set(names)]
    row: Row = {"photo": photo, "text": text, "pairs": [list(pair) for pair in pairs]}
    if not passed:
        detail = ", ".join(names) or "none of the list"
        return row | {"kept": False, "reason": "names not in the text", "detail": detail}
    return row | {"kept": True, "query": [name for name in names if any(name in pair for pair in passed)]}
