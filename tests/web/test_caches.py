"""Rankings that are kept for a while."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from setnet.library import Library, PhotoQuery, Ranking
from setnet.web import caches
from setnet.web.caches import RankingCache
from tests.support.invented_photos import face_of, store


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as library:
        store(library, {f"{i}.jpg": [1] for i in range(20)})
        yield library


def ranking_in(library: Library, k: int = 3) -> Ranking:
    return library.rank(PhotoQuery([face_of(1)], k=k))


def test_a_ranking_is_found_by_its_query_commit_and_library(library: Library) -> None:
    kept, ranking = RankingCache(60, 1 << 20), ranking_in(library)
    kept.keep("query", library, ranking)
    assert kept.get("query", ranking.commit, library) is ranking
    assert kept.get("other", ranking.commit, library) is None
    assert kept.get("query", ranking.commit + 1, library) is None
    with Library.open(library.path) as again:  # as after all was forgotten and begun again
        assert kept.get("query", ranking.commit, again) is None
    kept.clear()
    assert kept.get("query", ranking.commit, library) is None
    assert (len(kept), kept.weight) == (0, 0)


def test_a_ranking_goes_when_nobody_asked_for_it_in_time(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(caches, "monotonic", lambda: now)
    kept, ranking = RankingCache(60, 1 << 20), ranking_in(library)
    kept.keep("a", library, ranking)
    now = 1050.0
    kept.keep("b", library, ranking)
    now = 1061.0
    assert kept.get("a", ranking.commit, library) is None
    assert kept.get("b", ranking.commit, library) is ranking
    kept.keep("b", library, ranking)  # a page was read: its time begins again
    now = 1120.0
    assert kept.get("b", ranking.commit, library) is ranking


def test_memory_is_bounded_and_the_longest_unused_go_first(library: Library) -> None:
    ranking = ranking_in(library)
    kept = RankingCache(60, 3 * ranking.nbytes)
    for name in ("a", "b", "c", "a", "d"):
        kept.keep(name, library, ranking)
    found = [name for name in ("a", "b", "c", "d") if kept.get(name, ranking.commit, library)]
    assert found == ["a", "c", "d"]
    assert kept.weight == 3 * ranking.nbytes


def test_a_ranking_that_grew_is_counted_as_it_is(library: Library) -> None:
    ranking = ranking_in(library)
    kept = RankingCache(60, 1 << 20)
    kept.keep("a", library, ranking)
    before = kept.weight
    ranking.page(10, 5)
    kept.keep("a", library, ranking)
    assert kept.weight == ranking.nbytes > before
    small = RankingCache(60, ranking.nbytes - 1)
    small.keep("a", library, ranking)  # one that does not fit is not kept: its pages are searched for
    assert (len(small), small.weight) == (0, 0)
