"""Ranks items that are in no index: candidates fetched from another store, scored as the engine scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, StorageError
from setnet.index.kernels import backend
from setnet.index.search.options import SearchOptions
from setnet.index.search.query import Query, QueryLike, query_elements
from setnet.index.search.ranked_items import RankedItems
from setnet.index.search.ranking import no_scores
from setnet.sets import Logistic


def rank_given(
    ids: Sequence[str],
    elements: NDArray[np.float32],
    counts: NDArray[np.int64],
    query: QueryLike,
    options: SearchOptions,
    logistic: Logistic,
) -> RankedItems:
    """Return the best of some items by the matching of their elements, as `SetIndex.rerank` does.

    Of equal items the one given first comes first. Of the options, those on elements count; ``known`` and
    optimal matching are for items of an index.

    Parameters
    ----------
    ids, elements, counts
        The items, as `SetIndex.add` takes them; each has an element at least.
    query, options
        As in `SetIndex.search`.
    logistic
        (w, b) of the score of a pair of elements.

    Examples
    --------
    >>> elements = np.eye(3, dtype=np.float32)
    >>> found = rank_given(["a", "b"], elements, np.array([1, 2]), elements[1:], SearchOptions(k=1),
    ...                    Logistic(20.0, -8.0))
    >>> found.ids, found.matched.tolist()
    (['b'], [2])
    """
    if options.known or options.matching != "greedy":
        raise InvalidInputError("known pairs and optimal matching are for items of an index: leave them out")
    dim = elements.shape[1]
    unwanted = [] if options.without is None else query_elements(options.without, dim, "without")
    wanted = query_elements(query, dim)
    asked = Query.of(wanted, unwanted, options.examples, logistic, options.scoring)
    out = no_scores(asked.size, len(ids))
    out.row[:] = out.seq[:] = np.arange(len(ids))
    if len(ids):
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        backend.kernels.evaluate(
            np.ascontiguousarray(elements, np.float32), 0, dim, offsets, asked.rows, asked.first_row,
            asked.combine, asked.without, asked.logistic.w, asked.logistic.b, asked.shift, asked.least,
            out.row, out.score, out.similarity_sum, out.similarity, out.element, out.matched, out.unmatched,
            out.unwanted,
        )  # fmt: skip
    finite = np.isfinite(out.similarity_sum)
    if not finite.all():
        raise StorageError(f"item {ids[int(finite.argmin())]!r} holds NaN or infinity: store it again")
    best = out.those(out.passing(options.at_least, options.only)).ranked(options.k)
    names = [ids[i] for i in best.row.tolist()]
    arrays = (best.score, best.matched, best.element, best.similarity, best.similarity_sum)
    return RankedItems(names, *arrays)
