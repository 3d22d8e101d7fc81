"""The routes about people: saved ones, their examples, what was said of matches, the journal, files."""

from __future__ import annotations

from fastapi import APIRouter

from setnet.web.api.people import changes, examples, people, people_file, person_photos, verdicts

__all__ = ["routes"]

routes = APIRouter(tags=["people"])
# Addresses that go on after a name come before those that end with it.
for part in (examples, verdicts, person_photos, people, changes, people_file):
    routes.include_router(part.routes)
