"""Searches and their answers as messages: JSON fields and raw arrays, which any machine can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.index import (
    Candidates,
    Hit,
    ItemsLike,
    KnownPair,
    Match,
    QueryLike,
    RankedItems,
    Scoring,
    SearchOptions,
    Settings,
    conditions_of,
    query_elements,
)
from setnet.workers import Message

Arrays = dict[str, NDArray[Any]]
_OF_VALUES = [f.name for f in fields(SearchOptions) if f.name not in ("where", "without", "scoring", "known")]


def call(
    name: str,
    queries: Sequence[QueryLike],
    options: SearchOptions,
    settings: Settings,
    **more: Any,
) -> Message:
    """Return the message that asks a shard a search; a bad value is an error here, not on another machine."""
    arrays: Arrays = {}
    asked = [_query(query, options, settings, f"query {i}", arrays) for i, query in enumerate(queries)]
    if options.without is not None:
        _pack(query_elements(options.without, settings.shape.dim, "without"), "without", arrays)
    return Message(name, {"queries": asked, "options": _options(options), **more}, arrays)


def with_items(message: Message, items: Sequence[ItemsLike]) -> Message:
    """Return a message that also names some items for each query, by ids or by numbers."""
    numbers = {f"items {i}": some for i, some in enumerate(items) if isinstance(some, np.ndarray)}
    ids = [None if isinstance(some, np.ndarray) else some for some in items]
    return replace(message, fields={**message.fields, "items": ids}, arrays={**message.arrays, **numbers})


def items_in(message: Message) -> list[ItemsLike]:
    """Return the items that a message names for each query."""
    names = enumerate(message.fields["items"])
    return [message.arrays[f"items {i}"] if ids is None else ids for i, ids in names]


def asked(message: Message) -> tuple[list[Any], SearchOptions]:
    """Return the queries and options of a message."""
    arrays = message.arrays
    given = dict(message.fields["options"])
    known, scoring = given.pop("known"), given.pop("scoring")
    options = SearchOptions(
        **given,
        without=_unpack("without", arrays) if "without" in arrays else None,
        scoring=None if scoring is None else Scoring(**{k: _tuple(v) for k, v in scoring.items()}),
        known=known and {name: [KnownPair(*pair) for pair in pairs] for name, pairs in known.items()},
    )
    queries: list[Any] = []
    for i, names in enumerate(message.fields["queries"]):
        groups = _unpack(f"query {i}", arrays) if f"query {i}" in arrays else None
        together = names is not None and groups is not None
        queries.append(dict(zip(names, groups or (), strict=True)) if together else names or groups)
    return queries, options


def _query(
    query: QueryLike, options: SearchOptions, settings: Settings, name: str, arrays: Arrays
) -> list[str] | None:
    """Enter the vectors of a query among the arrays; return its names, if it has any."""
    names: list[str] | None = None
    if options.mode == "tags":
        names = [query] if isinstance(query, str) else list(query)  # type: ignore[arg-type]
        if not names or not all(isinstance(n, str) for n in names):
            raise InvalidInputError("in mode 'tags' a query is names, or a mapping from names to descriptors")
        if isinstance(query, Mapping):
            groups = [np.atleast_2d(examples) for examples in query.values()]
            _pack(query_elements(groups, settings.shape.dim), name, arrays)
        return names
    _pack(query_elements(query, query_dim(options, settings)), name, arrays)
    return names


def query_dim(options: SearchOptions, settings: Settings) -> int:
    """Return the dimension of a query's vectors: that of set vectors only where they are the caller's."""
    sets, of_elements = settings.shape.sets, options.without is not None or options.of_elements
    if options.mode == "set" and sets is not None and sets.name == "given" and not of_elements:
        return sets.dim
    return settings.shape.dim


def _pack(groups: Sequence[NDArray[Any]], name: str, arrays: Arrays) -> None:
    arrays[name] = np.concatenate(groups).astype(np.float32, copy=False)
    arrays[f"{name} sizes"] = np.array([len(group) for group in groups], np.int64)


def _unpack(name: str, arrays: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    return np.split(arrays[name], np.cumsum(arrays[f"{name} sizes"])[:-1])


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _options(options: SearchOptions) -> dict[str, Any]:
    where: dict[str, dict[str, Any]] = {}
    for condition in conditions_of(options.where or {}):
        values: Any = list(condition.values) if condition.operator == "in" else condition.values[0]
        where.setdefault(condition.attribute, {})[condition.operator] = values
    known = {name: [list(pair) for pair in pairs] for name, pairs in (options.known or {}).items()}
    return {
        **{name: getattr(options, name) for name in _OF_VALUES},
        "where": where or None,
        "scoring": None if options.scoring is None else asdict(options.scoring),
        "known": known or None,
    }


_RANKED = {"scores": np.float64, "matched": np.int64, "elements": np.int64, "similarities": np.float64}
_RANKED["sums"] = np.float64


def ranked_reply(answers: Sequence[RankedItems]) -> Message:
    """Return the answers to several queries as a reply."""
    arrays = {
        f"{name} {i}": getattr(items, name).astype(kind)
        for i, items in enumerate(answers)
        for name, kind in _RANKED.items()
    }
    return Message("done", {"ids": [items.ids for items in answers]}, arrays)


def ranked_in(reply: Message) -> list[RankedItems]:
    """Return the answers in a reply."""
    found = []
    for i, ids in enumerate(reply.fields["ids"]):
        arrays = {name: reply.arrays[f"{name} {i}"] for name in _RANKED}
        for name in ("matched", "elements"):
            arrays[name] = arrays[name].astype(np.int32)
        found.append(RankedItems(ids, **arrays))
    return found


def candidates_reply(answers: Sequence[Candidates]) -> Message:
    """Return the candidates of several queries as a reply."""
    parts = [{name: getattr(c, name) for name in _COUNTS} for c in answers]
    arrays = {f"{name} {i}": getattr(c, name) for i, c in enumerate(answers) for name in _NUMBERS}
    return Message("done", {"parts": parts}, arrays)


_COUNTS = ("count", "open_count", "least", "probed")
_NUMBERS = ("items", "estimates", "sure")


def candidates_in(reply: Message) -> list[Candidates]:
    """Return the candidates in a reply."""
    found = []
    for i, part in enumerate(reply.fields["parts"]):
        items, estimates, sure = (reply.arrays[f"{name} {i}"] for name in _NUMBERS)
        found.append(Candidates(items, estimates, sure, **part))
    return found


def hits_reply(answers: Sequence[Sequence[Hit]]) -> Message:
    """Return hits by tags as a reply."""
    packed = [[[hit.id, hit.score, [_match(m) for m in hit.matches]] for hit in hits] for hits in answers]
    return Message("done", {"hits": packed})


def _match(match: Match) -> list[Any]:
    return [match.query_element, match.element, match.similarity]


def hits_in(reply: Message) -> list[list[Hit]]:
    """Return the hits in a reply."""
    return [
        [Hit(name, score, tuple(Match(*m) for m in matches)) for name, score, matches in hits]
        for hits in reply.fields["hits"]
    ]
