"""A search index over the captions of an archive: SQLite FTS5, which ranks and excludes as an engine does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from setnet.collect.names.text_words import words_of
from setnet.collect.run.run_folder import CollectRun
from setnet.collect.sources.photo_source import CaptionedPhoto, parsed_words
from setnet.durable import storage_errors, transaction

_FILE = "captions.db"


class CaptionArchive:
    """Photos of an archive by the words of their captions; a `PhotoSource`.

    Words are indexed as names are compared, without case, accents and possessives. Among photos that fit
    BM25 of the phrases and of the other words decides; equal ones come in the order of the archive.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with storage_errors(path):
            self._db = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> CaptionArchive:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @classmethod
    def of(cls, run: CollectRun) -> CaptionArchive:
        """Return the archive of a run's captions; indexed when they changed since the last time."""
        path, captions = run.path / _FILE, run.manifest("captions")
        checksum = captions.summary().checksum
        archive = cls(path)
        if archive._indexed() != checksum:
            archive._fill(((row["photo"], row["text"]) for row in captions.kept()), checksum)
        return archive

    def _indexed(self) -> str:
        try:
            row = self._db.execute("SELECT checksum FROM made_from").fetchone()
        except sqlite3.Error:  # new, or damaged: it is made anew
            return ""
        return str(row[0]) if row else ""

    def _fill(self, captions: Iterable[tuple[str, str]], checksum: str) -> None:
        self._db.close()
        with storage_errors(self.path):
            self.path.unlink(missing_ok=True)
            self._db = sqlite3.connect(self.path, isolation_level=None)
            self.path.chmod(0o600)
            with transaction(self._db):
                self._db.execute("CREATE TABLE photos (id INTEGER PRIMARY KEY, photo BLOB, text TEXT)")
                self._db.execute("CREATE VIRTUAL TABLE words USING fts5(keys, content='')")
                self._db.execute("CREATE TABLE made_from (checksum TEXT)")
                for number, (photo, text) in enumerate(captions, 1):
                    stored = (number, photo.encode("utf-8", "surrogatepass"), text)
                    self._db.execute("INSERT INTO photos VALUES (?, ?, ?)", stored)
                    keys = " ".join(word.key for word in words_of(text))
                    self._db.execute("INSERT INTO words (rowid, keys) VALUES (?, ?)", (number, keys))
                self._db.execute("INSERT INTO made_from VALUES (?)", (checksum,))

    def search(
        self, words: str, *, without: Sequence[str] = (), limit: int = 100
    ) -> Iterator[CaptionedPhoto]:
        """Return photos whose caption fits, best first; see `PhotoSource.search`."""
        query = _query(words, without)
        if not query:
            return
        sql = """SELECT photo, text FROM words JOIN photos ON photos.id = words.rowid
                 WHERE words MATCH ? ORDER BY rank, words.rowid LIMIT ?"""
        with storage_errors(self.path), closing(self._db.execute(sql, (query, limit))) as rows:
            for photo, text in rows:
                yield CaptionedPhoto(photo.decode("utf-8", "surrogatepass"), text)


def _query(words: str, without: Sequence[str]) -> str:
    """Return the search in FTS5's language; empty when it asks for nothing."""
    needed, others = parsed_words(words)
    groups = [phrases for group in needed if (phrases := [p for p in map(_phrase, group) if p])]
    if not groups:
        return ""
    parts = [f"({' OR '.join(group)})" for group in groups]
    ranking = [phrase for phrase in map(_phrase, others) if phrase]
    if ranking:  # true for every photo that has the phrases; the words add to its rank
        parts.append(f"({' OR '.join([*groups[0], *ranking])})")
    query = " AND ".join(parts)
    excluded = [phrase for phrase in map(_phrase, without) if phrase]
    return f"({query}) NOT ({' OR '.join(excluded)})" if excluded else query


def _phrase(text: str) -> str:
    keys = " ".join(word.key for word in words_of(text))
    return f'"{keys}"' if keys else ""
