"""What requests and answers about the questions of `setnet collect` look like."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from setnet.web.api.bodies.requests import Name, Strict

Annotator = Annotated[str | None, Field(min_length=1, max_length=100, description="Who answers")]


class AnnotatorQuery(Strict):
    """Whose latest answer is meant."""

    annotator: Annotator = None


class DecisionQuery(AnnotatorQuery):
    """What a person says of a face."""

    question: Annotated[int, Field(ge=0, le=2**31, description="The question's id")]
    answer: Literal["name", "unknown", "drop photo"]
    name: Annotated[Name | None, Field(description="With the answer `name`: who it is")] = None

    @model_validator(mode="after")
    def _name_fits(self) -> Self:
        if (self.answer == "name") != (self.name is not None):
            raise ValueError("a name belongs to the answer 'name', and to no other")
        return self


class NamedScoreAnswer(BaseModel):
    """A name and its score."""

    name: str
    score: float


class QuestionAnswer(BaseModel):
    """A face that a person has to name."""

    id: int
    number: int
    box: list[float]
    width: int
    height: int
    text: str
    query: list[str]
    best: list[NamedScoreAnswer]
    rule: str


class QueueAnswer(BaseModel):
    """How many faces are asked, how many are answered, and how many by this person."""

    questions: int
    answered: int
    own: int


class NextAnswer(BaseModel):
    """The next question, if there is one, and how far the queue is."""

    question: QuestionAnswer | None
    state: QueueAnswer


class AnswersAnswer(BaseModel):
    """All answers, and how those who answered agree."""

    answers: list[dict[str, Any]]
    agreement: list[dict[str, Any]]
