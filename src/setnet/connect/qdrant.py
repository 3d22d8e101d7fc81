"""`QdrantSets`: search the points of a Qdrant collection by sets of vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from setnet.connect.external import ExternalSets, Floats
from setnet.engine.conditions import Condition, Value
from setnet.errors import InvalidInputError, NotAnIndexError
from setnet.heads import ELEMENT_LOGISTIC, Logistic

PAGE = 10_000  # points fetched at once
RANGES = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


class QdrantSets(ExternalSets):
    """A Qdrant collection, or a shard of Qdrant Edge, with one point per vector, such as one per face.

    Points with the same value in the payload field ``item`` are one item, such as a photo. The collection is
    only read. A payload index on ``item`` makes a search faster.

    Parameters
    ----------
    store
        An open `qdrant_edge.EdgeShard`, or a `qdrant_client.QdrantClient`.
    collection
        The client's collection; a shard has no name.
    item
        Payload field that says which item a point is in: text or a whole number.
    vector
        The name of the vector, if the points have named ones.
    logistic
        A matched pair of similarity s adds ``logistic.probability(s)`` to an item's score.

    Examples
    --------
    >>> sets = QdrantSets(EdgeShard.load("faces"), item="photo")                # doctest: +SKIP
    >>> [hit.id for hit in sets.search(query, k=10, where={"year": 2019})]       # doctest: +SKIP
    ['5f0c77e1']
    """

    def __init__(
        self,
        store: Any,
        collection: str | None = None,
        *,
        item: str = "item",
        vector: str | None = None,
        logistic: Logistic = ELEMENT_LOGISTIC,
    ) -> None:
        is_client = hasattr(store, "query_batch_points")
        if is_client and not collection:
            raise InvalidInputError("a client of Qdrant may have many collections: give the name of one")
        self._store, self._collection = store, collection if is_client else None
        self._types: Any = import_module("qdrant_client.models" if is_client else "qdrant_edge")
        self._item, self._vector, self.logistic = item, vector, logistic
        first = next(self._scroll(None, 1), None)
        if first is None:
            raise NotAnIndexError("this collection of Qdrant is empty: add points to it first")
        if first[0] is None:
            raise InvalidInputError(f"points have no {item!r} in their payload: name the field of their item")
        self.dim = len(first[1])

    def elements_near(
        self, rows: Floats, count: int, where: Sequence[Condition]
    ) -> tuple[Sequence[str], Floats]:
        """Return all elements of the items that have one of the ``count`` elements nearest to a row."""
        parts = [self._filter(condition) for condition in where]
        found = self._query(rows, count, self._types.Filter(must=parts))
        items = {point.payload[self._item]: None for point in found if self._item in (point.payload or {})}
        if not items:
            return [], np.empty((0, self.dim), np.float32)
        of_items = self._match(self._item, self._types.MatchAny(any=list(items)))
        owners, elements = zip(*self._scroll(self._types.Filter(must=[*parts, of_items]), PAGE), strict=True)
        return [str(owner) for owner in owners], np.array(elements, np.float32)

    def _query(self, rows: Floats, count: int, where: Any) -> Iterator[Any]:
        """Yield the points nearest to each row, with their items."""
        types, common = self._types, {"limit": count, "filter": where, "with_payload": [self._item]}
        if self._collection is None:
            nearest = [types.Query.Nearest(row, self._vector) for row in rows.tolist()]
            asked = [types.QueryRequest(query=query, **common) for query in nearest]
            answers = self._store.query_batch(types.QueryBatchRequest(asked))
        else:
            asked = [types.QueryRequest(query=row, using=self._vector, **common) for row in rows.tolist()]
            batch = self._store.query_batch_points(self._collection, asked)
            answers = [answer.points for answer in batch]
        return (point for answer in answers for point in answer)

    def _scroll(self, where: Any, page: int) -> Iterator[tuple[Any, Any]]:
        """Yield item and vector of points in the order of their ids."""
        vector: Any = True if self._vector is None else [self._vector]
        common, offset = {"limit": page, "with_payload": [self._item]}, None
        while True:
            if self._collection is None:
                request = self._types.ScrollRequest(filter=where, with_vector=vector, offset=offset, **common)
                points, offset = self._store.scroll(request)
            else:
                points, offset = self._store.scroll(
                    self._collection, scroll_filter=where, with_vectors=vector, offset=offset, **common
                )
            for point in points:
                held = point.vector if self._vector is None else point.vector[self._vector]
                yield (point.payload or {}).get(self._item), held
            if offset is None:
                return

    def _match(self, field: str, match: Any) -> Any:
        return self._types.FieldCondition(key=field, match=match)

    def _filter(self, condition: Condition) -> Any:
        """Return a condition on a payload field as Qdrant takes it."""
        types, field, operator = self._types, condition.attribute, condition.operator
        if operator == "prefix":
            return self._match(field, types.MatchPrefix(prefix=condition.values[0]))
        if operator == "in":
            if not condition.values:
                return self._match(field, types.MatchAny(any=[]))
            return types.Filter(should=[self._equals(field, value) for value in condition.values])
        if operator == "=":
            return self._equals(field, condition.values[0])
        if operator == "!=":
            absent = types.FieldCondition(key=field, is_empty=True)
            return types.Filter(must_not=[self._equals(field, condition.values[0]), absent])
        if isinstance(condition.values[0], str):
            raise InvalidInputError(
                f"condition on {field!r}: Qdrant has no order of texts, {operator!r} takes a number"
            )
        return self._range(field, **{RANGES[operator]: float(condition.values[0])})

    def _equals(self, field: str, value: Value) -> Any:
        if isinstance(value, str):
            return self._match(field, self._types.MatchValue(value=value))
        return self._range(field, gte=float(value), lte=float(value))  # 2019 and 2019.0 are equal

    def _range(self, field: str, **ends: float) -> Any:
        kind = getattr(self._types, "RangeFloat", None) or self._types.Range
        return self._types.FieldCondition(key=field, range=kind(**ends))
