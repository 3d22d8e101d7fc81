"""What requests about sets of vectors look like."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, StringConstraints

from setnet.web.api.bodies.requests import Strict, Vector

ItemId = Annotated[str, StringConstraints(min_length=1, max_length=512)]
Attribute = str | int | float | None


class NewSet(Strict):
    """A set to be made."""

    dim: Annotated[int, Field(ge=1, le=4096, description="Dimension of the elements")]
    precision: Literal["float32", "float16"] = "float32"
    logistic: Annotated[
        tuple[float, float] | None, Field(description="(w, b): a pair of similarity s adds sigmoid(w s + b)")
    ] = None


class NewItem(Strict):
    """An item: a set of elements."""

    id: ItemId
    elements: Annotated[list[Vector], Field(max_length=10_000, fail_fast=True)]
    attributes: Annotated[dict[str, Attribute], Field(max_length=100, default_factory=dict)]


class NewItems(Strict):
    """Items to be added; known ids are replaced."""

    items: Annotated[list[NewItem], Field(min_length=1, max_length=100_000, fail_fast=True)]


class ItemIds(Strict):
    """Items to be deleted."""

    ids: Annotated[list[ItemId], Field(min_length=1, max_length=100_000, fail_fast=True)]


class SetQuery(Strict):
    """A query: one vector, or several examples, per query element."""

    query: Annotated[
        list[Vector | Annotated[list[Vector], Field(min_length=1, max_length=100, fail_fast=True)]],
        Field(
            min_length=1,
            max_length=16,
            validation_alias=AliasChoices("query", "people"),
            description="Query elements; 'people' is accepted as a deprecated name of this field",
        ),
    ]
    without: Annotated[list[Vector], Field(max_length=16, default_factory=list)]
    k: Annotated[int, Field(ge=1, le=2000)] = 100
    mode: Literal["exact", "fast", "set"] = "exact"
    candidates: Annotated[int, Field(ge=1, le=100_000)] = 2000
    first: Annotated[Literal["codes", "sets"], Field(description="What mode fast ranks by first")] = "codes"
    probes: Annotated[int | None, Field(ge=0, le=4096, description="Inverted lists read in mode fast")] = None
    where: Annotated[dict[str, Any] | None, Field(description="Conditions on attributes")] = None
    at_least: Annotated[int, Field(ge=0, le=16)] = 0
    only: bool = False
    examples: Literal["aggregate", "mean", "max"] = "aggregate"
