"""Searchers, each of which has a part of a collection, and the client that asks all of them.

`setnet serve --collection URL --part i/n` runs a searcher. It answers requests and keeps nothing of them, so
any number of searchers may have the same part, and one that dies is simply started again.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import pairwise
from pathlib import Path
from socket import SHUT_RDWR
from statistics import median
from time import monotonic, sleep
from typing import Any, TypeVar, Unpack
from urllib.parse import urlsplit
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from setnet.engine.collection import CollectionReader
from setnet.engine.manifest import WHOLE, Share
from setnet.engine.probe import ListsRead
from setnet.engine.query import KnownPair, Mode, Query, QueryLike, Scoring, SearchOptions, query_elements
from setnet.engine.rank import Proposed, join, no_scores, proposed_items, ranked_items
from setnet.engine.results import RankedItems
from setnet.engine.segment import joined_texts
from setnet.errors import InvalidInputError, SetNetError, StorageError, choice_error

_LOG = logging.getLogger("setnet.connect")
PATH = "/collection/search"
LIMIT = 100_000  # hits and candidates that a searcher answers at most
_LARGEST = 1 << 30  # bytes of a message, unpacked
_EACH_OTHER = 0.5  # seconds until searchers with different manifests are asked again
_PATIENT, _IMPATIENT = 1.0, 0.05  # seconds until a second searcher is asked: at first, and at least
_KEPT = 8  # connections to a searcher, beside those in use
_FOLLOW = 1.0  # seconds between looks for a new manifest

K = TypeVar("K", bound=Hashable)


# -- messages ------------------------------------------------------------------------------------------------


def pack_message(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a message: arrays and facts for JSON, as npz."""
    try:
        text = json.dumps(facts, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"options that no message can hold: {error}") from None
    out = io.BytesIO()
    every: dict[str, Any] = {"facts": np.frombuffer(text, np.uint8), **arrays}
    np.savez(out, **every)
    return out.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{value!r:.80}")


def unpack_message(data: bytes, largest: int = _LARGEST) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts and arrays of a message; data that is none raises any exception."""
    with ZipFile(io.BytesIO(data)) as members:
        if sum(member.file_size for member in members.infolist()) > largest:
            raise ValueError("the message is too large")
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if not all(isinstance(array, np.ndarray) and array.dtype.kind in "biuf" for array in arrays.values()):
        raise ValueError("arrays of something else than numbers")
    facts = json.loads(arrays.pop("facts").tobytes())
    if not isinstance(facts, dict):
        raise ValueError("no facts")
    return facts, arrays


def _flatten(name: str, queries: Sequence[QueryLike]) -> dict[str, NDArray[Any]]:
    """Return queries as arrays: all rows, the rows of each query element, the elements of each query."""
    try:
        dim = np.shape(queries[0][0] if np.ndim(queries[0][0]) else queries[0])[-1]
    except (IndexError, TypeError, ValueError):
        raise InvalidInputError(f"{name} is empty: give at least one vector") from None
    groups = [query_elements(query, dim, name) for query in queries]
    every = [rows for group in groups for rows in group]
    return {
        f"{name}.rows": np.concatenate(every),
        f"{name}.sizes": np.array([len(rows) for rows in every]),
        f"{name}.elements": np.array([len(group) for group in groups]),
    }


def _group_rows(name: str, arrays: Mapping[str, NDArray[Any]]) -> list[list[NDArray[Any]]]:
    rows, sizes, elements = (arrays[f"{name}.{part}"] for part in ("rows", "sizes", "elements"))
    ends = np.cumsum(sizes)
    if (sizes < 1).any() or (elements < 1).any() or ends[-1] != len(rows) or elements.sum() != len(sizes):
        raise ValueError(f"{name}: numbers that do not fit")
    every = iter(np.split(rows, ends[:-1]))
    return [[next(every) for _ in range(count)] for count in elements.tolist()]


def _request(
    queries: Sequence[QueryLike], k: int, mode: Mode, options: SearchOptions, manifest: int | None
) -> bytes:
    unknown = next((name for name in options if name not in SearchOptions.__annotations__), None)
    if unknown is not None:
        raise choice_error("option", unknown, SearchOptions.__annotations__)
    arrays = _flatten("query", queries) if queries else {}
    facts: dict[str, Any] = {**options, "k": k, "mode": mode, "manifest": manifest}
    facts.pop("threads", None)  # the searchers' own matter
    without, scoring = facts.pop("without", None), facts.pop("scoring", None)
    if without is not None:
        arrays |= _flatten("without", [without])
    return pack_message(facts | {"scoring": asdict(scoring) if scoring else None}, arrays)


def _parse_request(
    facts: dict[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> tuple[list[Any], int, Mode, Any]:
    """Return queries, k, mode and options of a request, trusting nothing in it."""
    queries = _group_rows("query", arrays) if "query.rows" in arrays else []
    k, mode, scoring = facts.pop("k"), facts.pop("mode"), facts.pop("scoring")
    for name, value in {"k": k, "candidates": facts.get("candidates", 0)}.items():
        if type(value) is not int or not 0 <= value <= LIMIT:
            raise InvalidInputError(f"{name} is {value!r}: searchers answer 0 to {LIMIT:,}")
    if not facts.keys() <= SearchOptions.__annotations__.keys():
        raise ValueError("unknown options")
    for name in ("only", "aggregate_query", "attributes"):
        if type(facts.get(name, False)) is not bool:
            raise InvalidInputError(f"{name} is {facts[name]!r:.80}: True or False is expected")
    if "without.rows" in arrays:
        facts["without"] = _group_rows("without", arrays)[0]
    if scoring is not None:
        of_each = [tuple(map(float, scoring[name])) for name in ("centres", "thresholds", "without")]
        facts["scoring"] = Scoring(float(scoring["w"]), *of_each)
    if facts.get("known") is not None:
        facts["known"] = {
            name: [KnownPair(int(q), int(e), bool(is_match)) for q, e, is_match in pairs]
            for name, pairs in facts["known"].items()
        }
    return queries, k, mode, facts


_ARRAYS = ("seq", "score", "similarity_sum", "similarity", "element", "matched")


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a searcher proposes for each query, as of a manifest; it has those of ``recent`` too."""

    part: Share
    manifest: int
    recent: tuple[int, ...]
    about: Mapping[str, Any]
    ids: list[list[str]]
    found: list[Proposed]
    attributes: Sequence[Sequence[Mapping[str, Any]]]

    def to_bytes(self) -> bytes:
        """Return the answer as a message."""
        arrays: dict[str, NDArray[Any]] = {}
        asked = []
        every = zip(self.ids, self.found, self.attributes, strict=True)
        for i, (ids, found, details) in enumerate(every):
            offsets, texts = joined_texts(ids)
            own = {name: getattr(found.items, name) for name in _ARRAYS}
            own |= {"offsets": offsets, "texts": texts, "first": found.first}
            own |= {} if found.place is None else {"place": found.place}
            arrays |= {f"{i}.{name}": array for name, array in own.items()}
            asked.append({"how": found.how, "limit": found.limit, "read": found.read, "attributes": details})
        facts = {"part": self.part, "manifest": self.manifest, "recent": self.recent, "about": self.about}
        return pack_message(facts | {"queries": asked}, arrays)

    @classmethod
    def parse(cls, data: bytes) -> Answer:
        """Return an answer that was received; data that is none raises any exception."""
        facts, arrays = unpack_message(data)
        every, found, details = [], [], []
        for i, asked in enumerate(facts["queries"]):
            own = {name.partition(".")[2]: a for name, a in arrays.items() if name.startswith(f"{i}.")}
            offsets, texts = own["offsets"].tolist(), own["texts"].tobytes()
            ids = [texts[a:z].decode() for a, z in pairwise(offsets)]
            items = replace(
                no_scores(own["element"].shape[1], len(ids)), **{name: own[name] for name in _ARRAYS}
            )
            read, first, place = asked["read"], own["first"], own.get("place")
            if {len(own[name]) for name in _ARRAYS} != {len(ids)} or first.shape[1:] != (3,):
                raise ValueError("numbers that do not fit")
            if place is not None and (len(place) != len(ids) or (place >= len(first)).any()):
                raise ValueError("places that are none")
            if len(asked["attributes"]) not in (0, len(ids)):
                raise ValueError("attributes of no items")
            every.append(ids)
            details.append([dict(values) for values in asked["attributes"]])
            found.append(
                Proposed(items, asked["how"], asked["limit"], first, place, read and ListsRead(*read))
            )
        part, recent = (int(facts["part"][0]), int(facts["part"][1])), tuple(map(int, facts["recent"]))
        return cls(part, int(facts["manifest"]), recent, dict(facts["about"]), every, found, details)


# -- searcher ------------------------------------------------------------------------------------------------


class Searcher:
    """Answers searches in a part of a collection, and follows the collection's manifests.

    Segments of a folder are mapped, those of an address are copied to this machine's cache first.
    """

    def __init__(self, address: str | Path, part: Share = WHOLE) -> None:
        self._reader = CollectionReader(address, part=part)
        self._reader.refresh()
        self._reader.files.fresh_seconds = math.inf  # searches do not look for a new manifest: a thread does
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="setnet-manifests", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop following the collection and let go of its files."""
        self._closing.set()
        self._thread.join()
        self._reader.close()

    def _follow(self) -> None:
        failed = ""
        while not self._closing.wait(_FOLLOW):
            try:
                self._reader.update()
                failed = ""
            except (SetNetError, OSError) as error:
                if str(error) != failed:
                    _LOG.warning("%s: %s; searches go on with what is here", self._reader.path, error)
                failed = str(error)

    def answer(self, request: bytes) -> bytes:
        """Return the answer to a request of a `CollectionClient`, both as bytes."""
        try:
            facts, arrays = unpack_message(request)
            wanted = None if (number := facts.pop("manifest")) is None else int(number)
            queries, k, mode, options = _parse_request(facts, arrays)
        except InvalidInputError:
            raise
        except Exception as error:  # unpackers and NumPy raise whatever they like
            raise InvalidInputError(f"no request of a CollectionClient: {error!r:.200}") from None
        recent = {snapshot.generation: snapshot for snapshot in self._reader.recent}
        snapshot = recent.get(max(recent) if wanted is None else wanted)
        if snapshot is None:
            raise StorageError(
                f"manifest {wanted} is not here: those from {min(recent)} to {max(recent)} are"
            )
        reader, settings = self._reader, self._reader.settings
        where = options.get("where")
        if where is not None and not isinstance(where, Mapping):
            raise InvalidInputError(f"where must map attribute names to conditions, not be {where!r:.80}")
        known, head = reader.known_pairs(options.get("known")), partial(getattr, reader, "head")
        try:
            asked = [Query.of_index(query, settings, head, known, k, mode, **options) for query in queries]
        except (TypeError, AttributeError) as error:  # an option of another type
            raise InvalidInputError(f"options that do not fit: {error}") from None
        with snapshot.intact():
            found = proposed_items(snapshot, snapshot.allowed(where) if where else None, asked)
            named = [
                ranked_items(snapshot, one.items, query) for one, query in zip(found, asked, strict=True)
            ]
        about = {**snapshot.manifest.about, **settings.as_json()}
        numbers, ids = tuple(sorted(recent)), [one.ids for one in named]
        details = [one.attributes for one in named]
        return Answer(reader.part, snapshot.generation, numbers, about, ids, found, details).to_bytes()


# -- client --------------------------------------------------------------------------------------------------


class _Address:
    """A searcher's address, with connections that are kept."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInputError(f"{url!r} is no address of a searcher, such as http://localhost:8423")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.part: Share | None = None
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self.connect = partial(kind, parts.hostname, parts.port, timeout=timeout)
        self.path = parts.path.rstrip("/") + PATH
        self.headers = {"Content-Type": "application/octet-stream"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self.idle: deque[HTTPConnection] = deque()


class _Call:
    """A request to a searcher, which may be given up; those after the first take a new connection."""

    def __init__(self, address: _Address, is_first: bool) -> None:
        self._address, self._is_first = address, is_first
        self._connection: HTTPConnection | None = None
        self._is_given_up = False

    def give_up(self) -> None:
        """End the wait for the answer."""
        self._is_given_up = True
        sock = getattr(self._connection, "sock", None)
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(SHUT_RDWR)

    def answer(self, body: bytes, part: Share | None) -> Answer:
        """Return the answer, which must be that of a part if one is given."""
        status, data = self._post(body)
        url = self._address.url
        try:
            if status == 200:
                answer = Answer.parse(data)
                self._address.part = answer.part
                if part not in (None, answer.part):
                    raise StorageError(f"{url} has part {answer.part[0]}/{answer.part[1]} now")
                return answer
            detail = str(json.loads(data)["detail"])
        except StorageError:
            raise
        except Exception:  # a server of another kind
            raise StorageError(f"{url} answers, and is no searcher of this version of setnet") from None
        if status == 422:
            raise InvalidInputError(detail)
        raise StorageError(f"{url}: {detail}")

    def _post(self, body: bytes) -> tuple[int, bytes]:
        address = self._address
        while True:
            kept = address.idle.pop() if self._is_first and address.idle else None
            self._connection = connection = kept or address.connect()
            try:
                connection.request("POST", address.path, body, address.headers)
                response = connection.getresponse()
                data = response.read()
            except (OSError, HTTPException) as error:
                connection.close()
                if kept is None or self._is_given_up:
                    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
                    raise StorageError(f"{address.url} does not answer ({reason})") from None
            else:  # of those that were kept, the server may have closed some since
                address.idle.append(connection)
                if len(address.idle) > _KEPT:
                    address.idle.popleft().close()
                return response.status, data


class CollectionClient:
    """Searches a collection by asking searchers, each of which has a part of it.

    The answers are those of one index, exactly, in all modes. If a searcher is slow, another of the same part
    is asked too, or the same one over another connection. Safe to share between threads.

    Parameters
    ----------
    urls
        Addresses of `setnet serve --collection`, in any order; all parts, each once or more often.
    token
        What the searchers ask for; ``SETNET_TOKEN`` by default.
    timeout
        Seconds after which a part that has not answered is missing.

    Examples
    --------
    >>> client = CollectionClient(["http://a:8423", "http://b:8423"])            # doctest: +SKIP
    >>> client.search(query, k=10, at_least=2).ids                               # doctest: +SKIP
    ['/photos/2019/IMG_0815.jpg']
    """

    def __init__(self, urls: Sequence[str], *, token: str | None = None, timeout: float = 30.0) -> None:
        if isinstance(urls, str) or not urls:
            raise InvalidInputError(
                "give a list of addresses of searchers, such as ['http://localhost:8423']"
            )
        token = token or os.environ.get("SETNET_TOKEN") or None
        self._addresses = [_Address(url, token, timeout) for url in dict.fromkeys(urls)]
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(8 * len(self._addresses), "setnet-ask")
        self._took: deque[float] = deque(maxlen=64)
        self._turn = 0

    def __enter__(self) -> CollectionClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for address in self._addresses:
            while address.idle:
                address.idle.pop().close()

    @property
    def about(self) -> Mapping[str, Any]:
        """What the collection's vectors are of, such as the model that made them."""
        return self._ask_all([], 0, "exact", {}, some=True)[0][0].about

    def search(
        self,
        query: QueryLike,
        k: int = 100,
        mode: Mode = "exact",
        *,
        partial: bool = False,
        **options: Unpack[SearchOptions],
    ) -> RankedItems:
        """Return the k items that hold most of the query's elements, as `SetIndex.search` does.

        If a part is missing, that is an error which names it; with ``partial``, the answer is that of the
        other parts, and its ``missing`` says why.
        """
        return self.search_many([query], k, mode, partial=partial, **options)[0]

    def search_many(
        self,
        queries: Sequence[QueryLike],
        k: int = 100,
        mode: Mode = "exact",
        *,
        partial: bool = False,
        **options: Unpack[SearchOptions],
    ) -> list[RankedItems]:
        """Answer several queries as `search` does, with the same options."""
        if not queries:
            return []
        answers, missing = self._ask_all(queries, k, mode, options, some=partial)
        hits = []
        for i, query in enumerate(queries):
            if len({answer.found[i].how for answer in answers}) > 1:  # lists did not pay everywhere
                hits.append(self.search(query, k, "exact", partial=partial, **options))
                continue
            ids = [name for answer in answers for name in answer.ids[i]]
            found = join([answer.found[i] for answer in answers])
            every = replace(found, items=replace(found.items, row=np.arange(len(ids))))
            best, how = every.ranked(k)
            rows = best.row.tolist()
            details = [values for answer in answers for values in answer.attributes[i]]
            ranked = replace(
                best.items([ids[row] for row in rows]),
                attributes=[details[row] for row in rows] if details else (),
            )
            hits.append(replace(ranked, missing=tuple(missing), **how))
        return hits

    def _ask_all(
        self, queries: Sequence[QueryLike], k: int, mode: Mode, options: SearchOptions, *, some: bool
    ) -> tuple[list[Answer], list[str]]:
        """Return the answers of all parts as of the newest manifest that all have, and what is missing.

        A missing part is an error unless ``some`` parts are enough.
        """
        deadline, is_first = monotonic() + self._timeout, True
        while True:
            parts, nobody = self._parts()
            answers, missing = self._ask(_request(queries, k, mode, options, None), parts)
            missing |= nobody
            others = any(address.part is None for address in self._addresses)
            for address in [each for part in missing for each in parts.get(part, ())]:
                address.part = None  # it may come back with another one
            if missing and others and is_first:
                is_first = False
                continue
            if missing and not (some and answers):
                (i, n), reason = min(missing.items())
                raise StorageError(f"part {i}/{n} is missing: {reason}")
            newest = max(set.intersection(*({*answer.recent} for answer in answers.values())), default=0)
            late = {part: parts[part] for part, answer in answers.items() if answer.manifest != newest}
            if newest and late:
                answers |= self._ask(_request(queries, k, mode, options, newest), late)[0]
            if all(answer.manifest == newest for answer in answers.values()):
                return list(answers.values()), [f"part {i}/{n}: {why}" for (i, n), why in missing.items()]
            if monotonic() > deadline:
                has = ", ".join(f"part {i} {answer.recent}" for (i, _), answer in answers.items())
                raise StorageError(f"the searchers have no manifest in common ({has}): is one of them stuck?")
            sleep(_EACH_OTHER)  # searchers pick up a new manifest within seconds

    def _parts(self) -> tuple[dict[Share, list[_Address]], dict[Share, str]]:
        """Return who has each part, asking those of whom that is not known; and which parts nobody has."""

        def is_covered() -> bool:
            known = {address.part for address in self._addresses if address.part is not None}
            return any(len(known) == n for _, n in known)

        reasons: dict[_Address, str] = {}
        if not is_covered():
            unknown = {address: [address] for address in self._addresses if address.part is None}
            _, reasons = self._ask(_request([], 0, "exact", {}, None), unknown, is_covered)
        parts: dict[Share, list[_Address]] = {}
        for address in self._addresses:
            if address.part is not None:
                parts.setdefault(address.part, []).append(address)
        why = "; ".join(reasons.values()) or "no address has it"
        if not parts:
            raise StorageError(f"no searcher answers: {why}")
        if len(numbers := {n for _, n in parts}) > 1:
            has = ", ".join(f"{own[0].url} has {i}/{n}" for (i, n), own in sorted(parts.items()))
            for address in self._addresses:
                address.part = None
            raise InvalidInputError(f"the searchers share the collection in different ways: {has}")
        (n,) = numbers
        return parts, {(i, n): why for i in range(1, n + 1) if (i, n) not in parts}

    def _ask(
        self,
        body: bytes,
        targets: Mapping[K, Sequence[_Address]],
        is_enough: Callable[[], bool] = lambda: False,
    ) -> tuple[dict[K, Answer], dict[K, str]]:
        """Return the first answer for each target, a part or an address, and why others have none."""
        began, self._turn = monotonic(), self._turn + 1
        patience = max(_IMPATIENT, 3 * median(self._took)) if self._took else _PATIENT
        running: dict[Future[Answer], tuple[K, _Call]] = {}
        answers: dict[K, Answer] = {}
        reasons = dict.fromkeys(targets, f"no answer within {self._timeout:g} s")
        due: dict[K, float] = {}
        left: dict[K, list[_Call]] = {}  # each address in turn, and then all of them over new connections

        def ask(target: K) -> None:
            call, part = left[target].pop(0), target if isinstance(target, tuple) else None
            running[self._threads.submit(call.answer, body, part)] = target, call
            due[target] = monotonic() + patience if left[target] else math.inf

        for target, own in targets.items():
            turn = self._turn % len(own)
            left[target] = [_Call(each, not i) for i in range(2) for each in (*own[turn:], *own[:turn])]
            ask(target)
        while (waiting := {t for t, _ in running.values()} - answers.keys()) and not is_enough():
            now, end = monotonic(), began + self._timeout
            if now > end:
                break
            until = min(end, *(due[target] for target in waiting))
            done, _ = wait(running, max(0.0, until - now), FIRST_COMPLETED)
            for future in done:
                target, _ = running.pop(future)
                try:
                    answers.setdefault(target, future.result())
                    self._took.append(monotonic() - began)
                except StorageError as error:
                    reasons[target] = str(error)
                    due[target] = 0.0 if left[target] else math.inf
            for target in waiting - answers.keys():
                if due[target] <= monotonic() and left[target]:
                    ask(target)
        for future, (target, call) in running.items():
            if target in answers or monotonic() - began > self._timeout:
                future.cancel()
                call.give_up()
        return answers, {target: why for target, why in reasons.items() if target not in answers}
