"""What all answers share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """An answer of the server; fields that a newer server adds are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)
