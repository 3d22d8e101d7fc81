"""What answers about people look like; see `answers` for how they are used."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from setnet.client.answers.base_answer import Answer


class PersonAnswer(Answer):
    """A saved person."""

    id: Annotated[str, Field(description="Stays the same whatever they are called")]
    name: str
    aliases: list[str]
    note: str
    cover: Annotated[int | None, Field(description="The example whose picture stands for them, if chosen")]
    examples: int
    added: float
    has_picture: bool
    change: Annotated[int | None, Field(description="After a change: its number, to undo it")] = None


class SavedPersonAnswer(PersonAnswer):
    """A person who was saved, with remarks for the user."""

    notes: list[str]


class ListedPersonAnswer(PersonAnswer):
    """A saved person in the list of all."""

    photos: Annotated[int, Field(description="As many as /people/{name}/photos lists")]


class PeopleAnswer(Answer):
    """The saved people, by name."""

    people: list[ListedPersonAnswer]


class ExampleAnswer(Answer):
    """An example face of a person."""

    number: Annotated[int, Field(description="Its own for as long as it is kept, whoever it belongs to")]
    origin: Literal["portrait", "confirmed", "group", "import"]
    source: Annotated[str | None, Field(description="The path of the photo it came from")]
    content: Annotated[str | None, Field(description="The hash of that photo's file")]
    box: list[float] | None
    has_picture: bool
    added: float


class ExamplesAnswer(Answer):
    """The example faces of a person, oldest first."""

    examples: list[ExampleAnswer]


class VerdictAnswer(Answer):
    """A face that was confirmed or refused."""

    id: int
    person: str
    says: Literal["yes", "no"]
    photo: Annotated[str | None, Field(description="Where the face is now; null: in no photo of the library")]
    face: int | None
    content: str
    box: list[float]
    added: float


class VerdictsAnswer(Answer):
    """What was confirmed and refused of a person."""

    verdicts: list[VerdictAnswer]


class ChangeAnswer(Answer):
    """An entry of the journal."""

    id: int
    at: float
    kind: str
    summary: str
    undoes: int | None
    undone_by: int | None


class ChangesAnswer(Answer):
    """The journal, latest first."""

    changes: list[ChangeAnswer]


class ImportAnswer(Answer):
    """What came into the library with a file of people."""

    people: int
    new: int
    examples: int
    verdicts: int
    not_found: int
    notes: list[str]
    change: int | None


class PeopleFileAnswer(Answer):
    """People as a file: what `POST /import/people` takes."""

    format: str
    version: int
    model: Annotated[str | None, Field(description="Whose descriptors are in it; null without")]
    dim: int | None
    people: list[dict[str, Any]]
