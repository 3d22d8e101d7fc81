"""`ExternalSets`: sets of vectors that are in another engine, which proposes items for setnet to rank."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Hit, QueryLike, VectorsLike
from setnet.engine.conditions import Condition, conditions_of
from setnet.engine.query import Examples, Query
from setnet.engine.rank import rank_given
from setnet.errors import InvalidInputError
from setnet.heads import ELEMENT_LOGISTIC, Logistic, unit

Floats = NDArray[np.float32]


class ElementOptions(TypedDict, total=False):
    """The keywords of `ExternalSets.search` that `setnet.engine.SearchOptions` explains."""

    at_least: int
    only: bool
    without: VectorsLike | None
    examples: Examples


class ExternalSets(ABC):
    """Vectors in an engine that knows no sets, one row per vector, such as one per face.

    Rows with the same item, such as a photo, are one set. The engine finds the rows nearest to each query
    element; setnet fetches all rows of their items and ranks these as `SetIndex` does. For an engine that
    setnet does not know, write a subclass with `elements_near`.

    Attributes
    ----------
    dim
        Dimension of the vectors.
    logistic
        A matched pair of similarity s adds ``logistic.probability(s)`` to an item's score.
    """

    dim: int
    logistic: Logistic = ELEMENT_LOGISTIC

    @abstractmethod
    def elements_near(
        self, rows: Floats, count: int, where: Sequence[Condition]
    ) -> tuple[Sequence[str], Floats]:
        """Return all elements of the items that have one of the ``count`` elements nearest to a row.

        Parameters
        ----------
        rows
            (Q, dim) array of query elements at unit length.
        count
            How many of the nearest elements of each row propose their items.
        where
            Elements that do not satisfy all these conditions count as not there.

        Returns
        -------
        tuple
            The id of its item for each element, and the elements as rows of any length but zero. The elements
            of an item are in an order that is always the same.
        """

    def search(
        self,
        query: QueryLike,
        k: int = 100,
        *,
        candidates: int = 200,
        where: Mapping[str, Any] | None = None,
        **options: Unpack[ElementOptions],
    ) -> list[Hit]:
        """Return the items that hold most of the query's elements, best first.

        Parameters
        ----------
        query
            (Q, dim) array, or a list with one (n, dim) array of examples per query element.
        k
            How many hits at most.
        candidates
            Items are ranked that have one of so many rows nearest to each query element. The engine finds
            these rows by its index, if there is one. Conditions on elements hold among the items, so that
            with strict ones fewer than k may be found though there are more.
        where
            Conditions on other columns, as on attributes in `SetIndex.search`. Rows that do not satisfy them
            count as not there.
        **options
            ``at_least``, ``only``, ``without`` and ``examples``, as in `setnet.engine.SearchOptions`.
        """
        if where is not None and not isinstance(where, Mapping):
            raise InvalidInputError(f"where must map columns to conditions, not be {where!r:.80}")
        asked = Query.of(query, self.dim, self.logistic, k, candidates=candidates, **options)
        one_each: Examples = "max" if options.get("examples") == "max" else "aggregate"
        rows = Query.of(query, self.dim, self.logistic, examples=one_each).wanted.astype(np.float32)
        owners, elements = self.elements_near(unit(rows), candidates, conditions_of(where or {}))
        ids, owner = np.unique(np.array(owners, np.str_), return_inverse=True)  # of equal hits the lower id
        order = np.argsort(owner, kind="stable")
        rows = unit(np.asarray(elements, np.float32).reshape(-1, self.dim)[order])
        return rank_given(ids.tolist(), rows, np.bincount(owner, minlength=len(ids)), asked).hits()
