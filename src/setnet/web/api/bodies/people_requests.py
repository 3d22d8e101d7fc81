"""What requests about people look like."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from setnet.web.api.bodies.requests import Examples, Name, Strict

Note = Annotated[str, StringConstraints(max_length=10_000)]
Number = Annotated[int, Field(ge=1, le=2**62, description="The number of an example, as /examples has it")]
Numbers = Annotated[list[Number], Field(min_length=1, max_length=1000)]
IfExists = Annotated[
    Literal["ask", "add", "refuse"],
    Field(
        description="When somebody is called so: `ask` adds what is spelt and looks like them and "
        "answers 409 otherwise, `add` adds in any case, `refuse` in none"
    ),
]


class NewPerson(Examples):
    """A person to be kept; a known name gets more examples."""

    name: Name
    if_exists: IfExists = "ask"


class PersonChange(Strict):
    """What to change of a person; what is left out stays as it is."""

    name: Name | None = None
    aliases: Annotated[
        list[Name] | None, Field(max_length=100, description="All other names from now on")
    ] = None
    note: Note | None = None
    cover: Annotated[
        int | None,
        Field(ge=0, le=2**62, description="The example whose picture stands for them; 0: none chosen"),
    ] = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("say what to change: name, aliases, note or cover")
        return self


class MergeQuery(Strict):
    """People who are the same person."""

    others: Annotated[list[Name], Field(min_length=1, max_length=100)]


class SplitQuery(Strict):
    """Examples that become a new person."""

    name: Name
    examples: Numbers


class MoveQuery(Strict):
    """Examples that are another saved person's."""

    to: Name
    examples: Numbers


class UndoQuery(Strict):
    """Which change to undo; none: the latest that is not undone."""

    change: Annotated[int | None, Field(ge=1, le=2**62)] = None
