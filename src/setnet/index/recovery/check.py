"""Verifies an index from the files up: checksums, structure, and that catalogue and segments agree."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np

from setnet.errors import SetNetError
from setnet.index.results import Report
from setnet.index.storage.catalog import Catalog
from setnet.index.storage.commit_log import CommitLog, Committed
from setnet.index.storage.segments.segment import Segment
from setnet.index.storage.segments.segment_folder import segment_path
from setnet.index.storage.shape import Shape
from setnet.index.storage.snapshot import open_segment

ROWS = 8192


def check_index(catalog: Catalog, root: Path, shape: Shape) -> Report:
    """Return all problems found, as of one commit; a damaged file is named."""
    problems: list[str] = []
    try:
        logged = CommitLog(root).read()  # before the catalogue: a writer beside us only moves on
        while True:
            with catalog.reading():
                found = _log_problems(catalog, logged) + catalog.damage()
                segments, damage = _segments(catalog, root, shape)
                if not found and not damage:
                    found = _disagreements(catalog, segments)
                generation = catalog.get("generation")
            if not damage or generation == catalog.get("generation"):
                break  # else a merge has removed files since: look at the new ones
        problems += found + damage
    except (OSError, sqlite3.DatabaseError, SetNetError, ValueError) as error:
        problems.append(f"{catalog.path} is damaged: {error}")
    return Report(not problems, problems)


def _log_problems(catalog: Catalog, logged: Committed | None) -> list[str]:
    """Compare the catalogue with the commit log, which a writer beside us or a kill may leave behind it."""
    if logged is None:
        return []
    if logged.damage:
        return [logged.damage]
    generation = catalog.get("generation")
    if logged.generation > generation:
        return [
            f"{catalog.path} has lost {logged.generation - generation} stored changes: its write-ahead log "
            "was damaged"
        ]
    if logged.generation == generation and logged != catalog.committed():
        return [f"{catalog.path} is damaged: its segments, deletions or settings are not the logged ones"]
    return []


def _segments(catalog: Catalog, root: Path, shape: Shape) -> tuple[list[Segment], list[str]]:
    """Open every segment the catalogue names; return them and what is wrong with their files."""
    segments, problems = [], []
    for listed in catalog.segments():
        try:
            segments.append(open_segment(root, listed, shape))
            problems += segments[-1].problems()
        except (OSError, SetNetError) as error:
            path = segment_path(root, listed[0])
            problems.append(str(error) if str(path) in str(error) else f"{path}: {error}")
    return segments, problems


def _disagreements(catalog: Catalog, segments: list[Segment]) -> list[str]:
    """Compare what the segments hold alive with the items and attributes of the catalogue."""
    problems: list[str] = []
    names = {number: name for name, number in catalog.attribute_numbers().items()}
    alive = 0
    for segment in segments:
        dead = catalog.dead_rows(segment.number, len(segment))
        rows = np.arange(len(segment)) if dead is None else np.flatnonzero(~dead)
        buried = len(segment) - len(rows), int(segment.offsets[-1] - segment.counts[rows].sum())
        if catalog.deleted_counts(segment.number) != buried:
            problems.append(f"{catalog.path} miscounts the deleted items of {segment.file.path}")
        alive += len(rows)
        for at in range(0, len(rows), ROWS):
            part = rows[at : at + ROWS]
            seqs = segment.seq[part].tolist()
            stored = dict(zip(seqs, segment.ids_of(part), strict=True))
            marks = f"seq BETWEEN {seqs[0]} AND {seqs[-1]}"
            ids = dict(catalog.db.execute(f"SELECT seq, id FROM items WHERE {marks}").fetchall())
            wrong = [i for seq, i in stored.items() if ids.get(seq) != i]
            if wrong:
                problems.append(f"{catalog.path} and {segment.file.path} disagree on item {wrong[0]!r}")
            entered: dict[int, dict[str, object]] = {}
            for name, value, seq in catalog.db.execute(
                f"SELECT name, value, seq FROM attributes WHERE {marks}"
            ):
                entered.setdefault(seq, {})[names.get(name, "?")] = value
            for seq, stored_values in zip(seqs, segment.attribute_values_of(part), strict=True):
                if entered.get(seq, {}) != stored_values:
                    problems.append(
                        f"{catalog.path} and {segment.file.path} disagree on attributes of {stored[seq]!r}"
                    )
                    break
    if alive != catalog.count("items"):
        problems.append(f"{catalog.path} lists {catalog.count('items')} items, its segments hold {alive}")
    return problems
