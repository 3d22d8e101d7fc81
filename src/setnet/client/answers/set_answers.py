"""Answers about sets of vectors."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from setnet.client.answers.base_answer import Answer


class SetsAnswer(Answer):
    """The names of the sets of vectors."""

    sets: list[str]


class SetAnswer(Answer):
    """What a set of vectors holds."""

    items: int
    elements: int
    segments: int
    deleted: int
    bytes: int
    bytes_by_file: dict[str, int]
    dim: int
    precision: str
    set_vectors: str
    set_dim: int
    set_bits: int
    tags: int
    kernels: str


class AddedAnswer(Answer):
    """How many items were stored."""

    added: int


class DeletedAnswer(Answer):
    """How many items were deleted."""

    deleted: int


class ElementMatchAnswer(Answer):
    """An element of the query with the item's element that it was matched with."""

    query_element: int | str
    element: int
    similarity: float
    person: Annotated[int | str, Field(deprecated=True, description="The former name of `query_element`")]


class SetHitAnswer(Answer):
    """An item that was found."""

    id: str
    score: float
    matches: list[ElementMatchAnswer]


class SetHitsAnswer(Answer):
    """Items with most of the query's elements first."""

    hits: list[SetHitAnswer]
    searched: int
    seconds: dict[str, float]
