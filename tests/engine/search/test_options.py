"""The options of a search."""

from __future__ import annotations

from dataclasses import fields
from typing import get_type_hints

from setnet.engine.query import MoreOptions, SearchOptions


def test_the_keywords_of_search_are_the_fields_of_its_options() -> None:
    keywords = get_type_hints(MoreOptions)
    own = {field.name for field in fields(SearchOptions)} - {"k", "mode"}
    assert set(keywords) == own
    assert keywords == {name: get_type_hints(SearchOptions)[name] for name in own}
