"""Cursors that nobody can forge, and rankings that are kept for a while."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.library import Library, PhotoQuery, Ranking
from setnet.web import caches
from setnet.web.caches import Cursors, Place, RankingCache
from tests.support.invented_photos import face_of, store

DIGEST = b"a query"


@given(st.integers(0, 20_000), st.integers(0, 2**63))
def test_a_cursor_keeps_its_place(offset: int, commit: int) -> None:
    cursors = Cursors()
    place = Place(offset, commit)
    assert cursors.place_in(cursors.at(place, DIGEST), DIGEST) == place


@given(st.integers(0, 28 * 8 - 1))
def test_a_cursor_with_any_bit_changed_is_refused(bit: int) -> None:
    cursors = Cursors()
    data = bytearray(base64.urlsafe_b64decode(cursors.at(Place(50, 7), DIGEST)))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(InvalidInputError, match="start again"):
        cursors.place_in(base64.urlsafe_b64encode(data).decode(), DIGEST)


@given(st.text(max_size=60) | st.binary(max_size=40).map(lambda b: base64.urlsafe_b64encode(b).decode()))
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="start again"):
        Cursors().place_in(text, DIGEST)


def test_a_cursor_fits_its_own_query_and_server_only() -> None:
    cursors = Cursors()
    cursor = cursors.at(Place(50, 7), DIGEST)
    with pytest.raises(InvalidInputError, match="does not belong to this query"):
        cursors.place_in(cursor, b"another query")
    with pytest.raises(InvalidInputError, match="last start"):
        Cursors().place_in(cursor, DIGEST)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as library:
        store(library, {f"{i}.jpg": [1] for i in range(20)})
        yield library


def ranking_in(library: Library, k: int = 3) -> Ranking:
    return library.rank(PhotoQuery([face_of(1)], k=k))


def test_a_ranking_is_found_by_its_query_commit_and_library(library: Library) -> None:
    kept, ranking = RankingCache(60, 1 << 20), ranking_in(library)
    kept.keep(b"query", library, ranking)
    assert kept.get(b"query", ranking.commit, library) is ranking
    assert kept.get(b"other", ranking.commit, library) is None
    assert kept.get(b"query", ranking.commit + 1, library) is None
    with Library.open(library.path) as again:  # as after all was forgotten and begun again
        assert kept.get(b"query", ranking.commit, again) is None
    kept.clear()
    assert kept.get(b"query", ranking.commit, library) is None
    assert (len(kept), kept.weight) == (0, 0)


def test_a_ranking_goes_when_nobody_asked_for_it_in_time(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(caches, "monotonic", lambda: now)
    kept, ranking = RankingCache(60, 1 << 20), ranking_in(library)
    kept.keep(b"a", library, ranking)
    now = 1050.0
    kept.keep(b"b", library, ranking)
    now = 1061.0
    assert kept.get(b"a", ranking.commit, library) is None
    assert kept.get(b"b", ranking.commit, library) is ranking
    kept.keep(b"b", library, ranking)  # a page was read: its time begins again
    now = 1120.0
    assert kept.get(b"b", ranking.commit, library) is ranking


def test_memory_is_bounded_and_the_longest_unused_go_first(library: Library) -> None:
    ranking = ranking_in(library)
    kept = RankingCache(60, 3 * ranking.nbytes)
    for name in (b"a", b"b", b"c", b"a", b"d"):
        kept.keep(name, library, ranking)
    found = [name for name in (b"a", b"b", b"c", b"d") if kept.get(name, ranking.commit, library)]
    assert found == [b"a", b"c", b"d"]
    assert kept.weight == 3 * ranking.nbytes


def test_a_ranking_that_grew_is_counted_as_it_is(library: Library) -> None:
    ranking = ranking_in(library)
    kept = RankingCache(60, 1 << 20)
    kept.keep(b"a", library, ranking)
    before = kept.weight
    ranking.page(10, 5)
    kept.keep(b"a", library, ranking)
    assert kept.weight == ranking.nbytes > before
    small = RankingCache(60, ranking.nbytes - 1)
    small.keep(b"a", library, ranking)  # one that does not fit is not kept: its pages are searched for
    assert (len(small), small.weight) == (0, 0)
