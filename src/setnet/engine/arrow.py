"""Items as a table of Arrow: a column of ids, one of lists of vectors, and one for each attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.results import Contents
from setnet.errors import InvalidInputError, MissingExtraError

COLUMNS = ("id", "elements")


def pyarrow() -> Any:
    """Return the package, or raise an error that names the extra that brings it."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        raise MissingExtraError("a table of Arrow", "pyarrow", "collection") from None
    return pyarrow


def to_table(contents: Contents, attributes: Sequence[Mapping[str, Any]]) -> Any:
    """Return items as a `pyarrow.Table`."""
    arrow = pyarrow()
    vectors = arrow.FixedSizeListArray.from_arrays(contents.elements.ravel(), contents.elements.shape[1])
    offsets = np.concatenate([[0], np.cumsum(contents.counts)]).astype(np.int64)
    columns = {"id": arrow.array(contents.ids, arrow.string())}
    columns["elements"] = arrow.LargeListArray.from_arrays(offsets, vectors)
    for name in sorted({name for values in attributes for name in values}):
        if name in COLUMNS:
            raise InvalidInputError(f"attribute {name!r} has the name of another column: rename it")
        try:
            columns[name] = arrow.array([values.get(name) for values in attributes])
        except arrow.ArrowException as error:
            raise InvalidInputError(f"attribute {name!r} has values of several kinds: {error}") from None
    return arrow.table(columns)


def from_table(table: Any) -> tuple[list[str], NDArray[Any], NDArray[np.int64], list[dict[str, Any]]]:
    """Return ids, elements, counts and attributes of a `pyarrow.Table`, as `SetIndex.add` takes them."""
    arrow = pyarrow()
    if missing := [name for name in COLUMNS if name not in table.column_names]:
        raise InvalidInputError(f"the table has no column {missing[0]!r}: it has {table.column_names}")
    lists = table.column("elements").combine_chunks()
    inner = getattr(lists.type, "value_type", None)
    if inner is None or not hasattr(inner, "list_size"):
        raise InvalidInputError(
            f"column 'elements' is of {lists.type}: lists of vectors of fixed size are expected"
        )
    counts = (
        arrow.compute.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    rows = lists.flatten().flatten().to_numpy(zero_copy_only=False).reshape(-1, inner.list_size)
    attributes = table.drop_columns(list(COLUMNS)).to_pylist()
    return table.column("id").to_pylist(), rows, counts, attributes or [{} for _ in counts]
