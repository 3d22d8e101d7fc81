"""What requests about groups of faces look like."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from setnet.web.api.bodies.people_requests import IfExists
from setnet.web.api.bodies.requests import FaceReference, Name, Strict


class DiscoverQuery(Strict):
    """How to group."""

    anew: Annotated[bool, Field(description="Group all faces again but those of named and hidden groups")] = (
        False
    )


class GroupName(Strict):
    """Who a group is."""

    name: Name
    without: Annotated[
        list[FaceReference],
        Field(
            default_factory=list, max_length=10_000, fail_fast=True, description="Faces that are not theirs"
        ),
    ]
    if_exists: IfExists = "ask"


class GroupChange(Strict):
    """What to change of a group."""

    hidden: Annotated[bool, Field(description="Nobody the user knows")]


class GroupRefusal(Strict):
    """Who a group is not."""

    person: Name
