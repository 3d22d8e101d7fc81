"""A photo library over the engine: scanning, incremental update, people, queries with conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setnet.lazy import lazy

if TYPE_CHECKING:
    from setnet.library.catalog import Counts
    from setnet.library.conditions import Conditions
    from setnet.library.library import Library
    from setnet.library.location import default_library
    from setnet.library.people import Example, People, Person
    from setnet.library.query import QueryPerson
    from setnet.library.records import FailedPhoto, LibraryPhoto, PersonMatch, PhotoHit, StoredFace
    from setnet.library.report import IndexProgress, IndexReport
    from setnet.library.searching import Answer
    from setnet.library.sheet import contact_sheet
    from setnet.library.status import LibraryStatus

# Names are imported on first use: looking something up must not pay for what makes it.
_HOME = {
    "Answer": "searching",
    "Conditions": "conditions",
    "Counts": "catalog",
    "Example": "people",
    "FailedPhoto": "records",
    "IndexProgress": "report",
    "IndexReport": "report",
    "Library": "library",
    "LibraryPhoto": "records",
    "LibraryStatus": "status",
    "People": "people",
    "Person": "people",
    "PersonMatch": "records",
    "PhotoHit": "records",
    "QueryPerson": "query",
    "StoredFace": "records",
    "contact_sheet": "sheet",
    "default_library": "location",
}

__all__ = [
    "Answer",
    "Conditions",
    "Counts",
    "Example",
    "FailedPhoto",
    "IndexProgress",
    "IndexReport",
    "Library",
    "LibraryPhoto",
    "LibraryStatus",
    "People",
    "Person",
    "PersonMatch",
    "PhotoHit",
    "QueryPerson",
    "StoredFace",
    "contact_sheet",
    "default_library",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
