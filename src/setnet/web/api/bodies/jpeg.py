"""Pictures as answers."""

from __future__ import annotations

from fastapi import Response


class Jpeg(Response):
    """A JPEG picture; as the class of a route's answers it also says so in the OpenAPI document."""

    media_type = "image/jpeg"
