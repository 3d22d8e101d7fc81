"""Searchers of parts of a collection together answer as one index, whatever happens to some of them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any, get_args

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples_of
from hypothesis import strategies as st

from setnet import SetIndex
from setnet.connect import CollectionClient, searchers
from setnet.connect.searchers import PATH, Searcher, pack_message, unpack_message
from setnet.engine import Collection
from setnet.engine.query import Examples, KnownPair, Matching, Scoring
from setnet.errors import InvalidInputError, SetNetError, StorageError
from tests.support.command_line import called
from tests.support.live_server import Running, searcher_on
from tests.support.soak import examples
from tests.support.tcp_proxy import Proxy

DIM, PEOPLE = 32, 150
RNG = np.random.default_rng(3)


def unit(rows: Any) -> Any:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


CENTRES = unit(RNG.normal(size=(PEOPLE, DIM)))


def fill(collection: Collection, first: int, count: int) -> None:
    counts = RNG.integers(0, 5, count)
    who = RNG.integers(0, PEOPLE, counts.sum())
    rows = unit(CENTRES[who] + 0.4 * RNG.normal(size=(len(who), DIM)) / np.sqrt(DIM))
    names = [f"photo {i}" for i in range(first, first + count)]
    facts = [{"year": 2000 + i % 20, "place": f"p{i % 3}"} for i in range(first, first + count)]
    collection.add(names, rows, counts, facts)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of three segments with inverted lists and five without, and deletions in all of them."""
    place = tmp_path_factory.mktemp("made") / "collection"
    collection = Collection.create(place, DIM, about={"model": "m"})
    for first in (0, 4000, 8000):
        fill(collection, first, 4000)
    for listed in collection.manifest.segments:
        collection._merge([listed], True)
    for first in range(12_000, 12_500, 100):
        fill(collection, first, 100)
    collection.delete([f"photo {i}" for i in range(0, 12_500, 9)])
    assert len(collection.manifest.segments) == 8
    return place


@pytest.fixture(scope="module")
def index(place: Path) -> Iterator[SetIndex]:
    with SetIndex.open(place) as index:
        yield index


@pytest.fixture(scope="module")
def clients(place: Path) -> Iterator[dict[int, CollectionClient]]:
    """Clients of one to eight searchers, which are asked without a network."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        parts: dict[str, Searcher] = {}
        over_network = searchers._Call._post

        def post(call: Any, body: bytes) -> tuple[int, bytes]:
            if call._address.url not in parts:
                return over_network(call, body)
            try:
                return 200, parts[call._address.url].answer(body)
            except SetNetError as error:
                return 422 if isinstance(error, InvalidInputError) else 503, json.dumps(
                    {"detail": str(error)}
                ).encode()

        patch.setattr(searchers._Call, "_post", post)
        made = {}
        for n in range(1, 9):
            urls = [f"http://{i}.of.{n}" for i in range(1, n + 1)]
            for i, url in enumerate(urls, 1):
                parts[url] = Searcher(place, (i, n))
                stack.callback(parts[url].close)
            made[n] = stack.enter_context(CollectionClient(urls))
        yield made


def query_of(people: list[int], examples: int = 1) -> Any:
    rng = np.random.default_rng(people)
    rows = [CENTRES[[p] * examples] + 0.3 * rng.normal(size=(examples, DIM)) / np.sqrt(DIM) for p in people]
    return [unit(group) for group in rows] if examples > 1 else unit(np.concatenate(rows))


CONDITIONS = {
    "where": st.sampled_from([None, {"year": {">=": 2005, "<": 2015}}, {"place": ["p1", "p2"]}]),
    "at_least": st.integers(0, 3),
    "only": st.booleans(),
    "without": st.sampled_from([None, query_of([7]), query_of([8, 9])]),
    "examples": st.sampled_from(get_args(Examples)),
    "matching": st.sampled_from(get_args(Matching)),
    "recall": st.sampled_from([0.6, 0.9]),
    "first": st.sampled_from(["lists", "lists", "sets"]),
    "candidates": st.sampled_from([5, 60, 2000]),
    "attributes": st.booleans(),
}


@given(
    st.integers(1, 8),
    st.lists(st.integers(0, PEOPLE - 1), min_size=1, max_size=3),
    st.sampled_from([1, 3]),
    st.sampled_from([0, 1, 10, 10, 300, 20_000]),
    st.sampled_from(["exact", "fast", "fast", "set"]),
    st.fixed_dictionaries({}, optional=CONDITIONS),
)
@examples_of(max_examples=examples(20))
def test_any_number_of_parts_answers_as_one_index(
    clients: dict[int, CollectionClient],
    index: SetIndex,
    parts: int,
    people: list[int],
    examples: int,
    k: int,
    mode: Any,
    options: Any,
) -> None:
    query = query_of(people, examples)
    expected = index.search(query, k, mode, **options)
    found = clients[parts].search(query, k, mode, **options)
    assert found == expected
    assert found.how == expected.how
    assert found.recall == (None if expected.recall is None else pytest.approx(expected.recall))
    assert found.missing == ()


def test_lists_scorings_known_pairs_and_many_queries(
    clients: dict[int, CollectionClient], index: SetIndex
) -> None:
    queries = [query_of([i, i + 1]) for i in range(5)]
    expected = index.search_many(queries, 10, "fast")
    assert all("lists" in hits.how for hits in expected)
    assert clients[3].search_many(queries, 10, "fast") == expected
    assert clients[3].search_many([]) == []
    scoring = Scoring(60.0, (0.5, 0.55), (0.42, 0.45))
    assert clients[4].search(queries[0], scoring=scoring) == index.search(queries[0], scoring=scoring)
    name = index.search(queries[0], at_least=1)[40].id
    known = {name: [KnownPair(0, 0, True)], "unknown": [KnownPair(0, 0, True)]}
    for hits, expected_hits in (
        (clients[8].search(queries[0], 10, known=known), index.search(queries[0], 10, known=known)),
        (
            clients[8].search(queries[0], 10, "fast", known=known),
            index.search(queries[0], 10, "fast", known=known),
        ),
    ):
        assert hits == expected_hits
        assert name in hits.ids
    found = clients[5].search(queries[1], mode="fast", aggregate_query=True)
    assert found == index.search(queries[1], mode="fast", aggregate_query=True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "exat"}, "unknown mode 'exat'"),
        ({"k": 10**9}, "k is 1000000000"),
        ({"where": {"years": 2000}}, "unknown attribute 'years'"),
        ({"where": [1]}, "must map attribute names"),
        ({"at_least": "x"}, "at_least"),
        ({"recall": "x"}, "do not fit"),
        ({"topk": 3}, "unknown option 'topk'"),
        ({"known": {"photo 1": [object()]}}, "no message can hold"),
    ],
)
def test_bad_options_are_named(clients: dict[int, CollectionClient], options: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        clients[2].search(query_of([1]), **options)


def test_what_is_no_request_is_refused(place: Path) -> None:
    searcher = Searcher(place)
    pickled = io.BytesIO()
    np.savez(pickled, facts=np.array([object()], dtype=object))
    rows = {"query.rows": np.ones((1, DIM)), "query.sizes": np.array([2]), "query.elements": np.array([1])}
    facts = {"k": 1, "mode": "exact", "manifest": None, "scoring": None}
    bad = [
        b"",
        b"PK",
        pickled.getvalue(),
        pack_message({}, {}),
        pack_message(facts, rows),
        pack_message(facts | {"head": 1}, {}),
    ]
    for request in bad:
        with pytest.raises(InvalidInputError, match="no request"):
            searcher.answer(request)
    with pytest.raises(ValueError, match="too large"):
        unpack_message(pack_message(facts, rows), 100)
    with pytest.raises(StorageError, match="manifest 999 is not here"):
        searcher.answer(pack_message(facts | {"manifest": 999}, {}))
    searcher.close()


@pytest.fixture(scope="module")
def running(place: Path) -> Iterator[list[Running]]:
    """Two searchers, each a process of its own."""
    with ExitStack() as stack:
        yield [stack.enter_context(searcher_on(place, f"{i}/2")) for i in (1, 2)]


@pytest.fixture
def proxies(running: list[Running]) -> Iterator[list[Proxy]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Proxy(server.url)) for server in running]


def test_slow_cut_and_frozen_connections_change_no_answer(
    proxies: list[Proxy], index: SetIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = query_of([1, 2])
    expected = index.search(query, 20)
    with CollectionClient([proxy.url for proxy in proxies]) as client:
        with monkeypatch.context() as patch:
            patch.setattr(searchers, "_PATIENT", 30.0)
            patch.setattr(searchers, "_IMPATIENT", 30.0)
            assert [client.search(query, 20) for _ in range(20)] == [expected] * 20
            assert [proxy.connections for proxy in proxies] == [1, 1]  # they are kept
        proxies[0].delay = 0.02
        assert client.search(query, 20) == expected
        proxies[0].delay = 0.0
        for harm in (proxies[0].freeze, proxies[1].cut, lambda: proxies[1].cut(1), proxies[1].freeze):
            harm()
            began = monotonic()
            assert client.search(query, 20) == expected
            assert monotonic() - began < 10  # and not the half a minute after which a part is missing


def test_a_part_that_is_missing_is_named_or_listed(
    running: list[Running], place: Path, index: SetIndex
) -> None:
    query = query_of([1, 2])
    with searcher_on(place, "2/2") as second:
        urls = [running[0].url, second.url]
        with CollectionClient(urls) as client, CollectionClient([*urls, running[1].url]) as doubled:
            assert client.search(query) == doubled.search(query) == index.search(query)
            assert client.about["model"] == "m"
            second.stop()
            with pytest.raises(StorageError, match=f"part 2/2 is missing: {second.url} does not answer"):
                client.search(query)
            found = client.search(query, partial=True)
            assert len(found.missing) == 1
            assert found.missing[0].startswith(f"part 2/2: {second.url} does not answer")
            rest = {hit.id: hit for hit in index.search(query, 20_000)}
            assert all(rest[hit.id] == hit for hit in found)
            assert doubled.search(query) == index.search(query)  # another searcher has the part
    with pytest.raises(StorageError, match=f"no searcher answers: {second.url}"):
        CollectionClient([second.url]).search(query)
    with pytest.raises(StorageError, match="part 2/2 is missing: no address has it"):
        CollectionClient([running[0].url]).search(query)
    with pytest.raises(InvalidInputError, match="no address of a searcher"):
        CollectionClient(["ftp://x"])


def test_searchers_follow_the_collection_and_agree_on_a_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searchers, "_EACH_OTHER", 0.2)
    collection = Collection.create(tmp_path / "made", 3)
    collection.add(["a", "b"], np.eye(3)[:2], [1, 1])
    collection.add(["c"], np.eye(3)[2:], [1])
    parts = {f"http://{i}": Searcher(tmp_path / "made", (i, 2)) for i in (1, 2)}
    for part in parts.values():  # from here on each follows when the test says so
        part._closing.set()
        part._thread.join()
    monkeypatch.setattr(
        searchers._Call, "_post", lambda call, body: (200, parts[call._address.url].answer(body))
    )
    with CollectionClient([*parts]) as client:
        assert client.search(np.eye(3), 9).ids == ["a", "b", "c"]
        collection.add(["d"], np.eye(3)[:1], [1])
        parts["http://1"]._reader.update()
        assert client.search(np.eye(3), 9).ids == ["a", "b", "c"]  # the newest that both have
        parts["http://2"]._reader.update()
        assert set(client.search(np.eye(3), 9).ids) == {"a", "b", "c", "d"}
        for name in "efgh":
            collection.add([name], np.eye(3)[:1], [1])
            parts["http://1"]._reader.update()
    with (
        CollectionClient([*parts], timeout=1.0) as client,
        pytest.raises(StorageError, match="no manifest in common"),
    ):
        client.search(np.eye(3))


def test_a_searcher_picks_up_a_new_manifest_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searchers, "_FOLLOW", 0.01)
    collection = Collection.create(tmp_path / "made", 3)
    searcher = Searcher(tmp_path / "made")
    try:
        collection.add(["a"], np.eye(3)[:1], [1])
        until = monotonic() + 30
        while searcher._reader.recent[0].generation != 2:
            assert monotonic() < until
    finally:
        searcher.close()


def test_a_searcher_has_the_token_rule_and_no_page(running: list[Running], place: Path) -> None:
    url = running[0].url
    assert httpx.get(f"{url}/").status_code == 404
    assert httpx.get(f"{url}{PATH}").status_code == 405
    refused = httpx.post(f"{url}{PATH}", content=b"x")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    assert httpx.post(f"{url}{PATH}", headers={"Host": "example.org"}, content=b"x").status_code == 421
    assert httpx.post(f"{url}{PATH}", content=bytes(5 << 20)).status_code == 413
    with searcher_on(place, "1/1", SETNET_TOKEN="a token of some length") as closed:
        query = query_of([1])
        with pytest.raises(StorageError, match="a token is needed"):
            CollectionClient([closed.url]).search(query)
        assert len(CollectionClient([closed.url], token="a token of some length").search(query, 3)) == 3


def test_the_command_says_what_is_wrong(place: Path, tmp_path: Path) -> None:
    for words, text in {
        f"--collection {place} --part 3/2": "i/n is expected",
        "--part 1/2": "name it with --collection",
        f"--collection {place} --open": "leave out --open",
        f"--collection {tmp_path}/none": "holds no collection",
    }.items():
        assert text in called("serve", *words.split(), "--port", 0, code=2)[1]
