from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from invented_photos import face_of, store
from setnet.library import Library, PhotoQuery, Ranking
from setnet.web.state import kept_rankings
from setnet.web.state.kept_rankings import KeptRankings


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as library:
        store(library, {f"{i}.jpg": [1] for i in range(20)})
        yield library


def ranking_in(library: Library, k: int = 3) -> Ranking:
    return library.rank(PhotoQuery([face_of(1)], k=k))


def test_a_ranking_is_found_by_its_query_commit_and_library(library: Library) -> None:
    kept, ranking = KeptRankings(60, 1 << 20), ranking_in(library)
    kept.keep(b"query", library, ranking)
    assert kept.get(b"query", ranking.commit, library) is ranking
    assert kept.get(b"other", ranking.commit, library) is None
    assert kept.get(b"query", ranking.commit + 1, library) is None
    with Library.open(library.path) as again:  # as after all was forgotten and begun anew
        assert kept.get(b"query", ranking.commit, again) is None
    kept.clear()
    assert kept.get(b"query", ranking.commit, library) is None
    assert (len(kept), kept.nbytes) == (0, 0)


def test_a_ranking_goes_when_nobody_asked_for_it_in_time(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(kept_rankings, "monotonic", lambda: now)
    kept, ranking = KeptRankings(60, 1 << 20), ranking_in(library)
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
    kept = KeptRankings(60, 3 * ranking.nbytes)
    for name in (b"a", b"b", b"c", b"a", b"d"):
        kept.keep(name, library, ranking)
    found = [name for name in (b"a", b"b", b"c", b"d") if kept.get(name, ranking.commit, library)]
    assert found == [b"a", b"c", b"d"]
    assert kept.nbytes == 3 * ranking.nbytes


def test_a_ranking_that_grew_is_counted_as_it_is(library: Library) -> None:
    ranking = ranking_in(library)
    kept = KeptRankings(60, 1 << 20)
    kept.keep(b"a", library, ranking)
    before = kept.nbytes
    ranking.page(10, 5)
    kept.keep(b"a", library, ranking)
    assert kept.nbytes == ranking.nbytes > before
    small = KeptRankings(60, ranking.nbytes - 1)
    small.keep(b"a", library, ranking)  # one that does not fit is not kept: its pages are searched for
    assert (len(small), small.nbytes) == (0, 0)
