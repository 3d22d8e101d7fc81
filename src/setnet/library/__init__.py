"""A photo library over the engine: scanning, incremental update, people, queries with conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setnet.lazy import lazy

if TYPE_CHECKING:
    from setnet.library.store.catalog import Counts
    from setnet.library.search.conditions import Conditions
    from setnet.library.library import Library
    from setnet.library.store.location import default_library
    from setnet.library.store.people import Example, People, Person
    from setnet.library.search.query_people import QueryPerson
    from setnet.library.store.records import FailedPhoto, LibraryPhoto, PersonMatch, PhotoHit, StoredFace
    from setnet.library.indexing.report import IndexProgress, IndexReport
    from setnet.library.search.answer import Answer
    from setnet.library.pictures.sheet import contact_sheet
    from setnet.library.store.status import LibraryStatus

# Names are imported on first use: looking something up must not pay for what makes it.
_HOME = {
    "Answer": "search.answer",
    "Conditions": "search.conditions",
    "Counts": "store.catalog",
    "Example": "store.people",
    "FailedPhoto": "store.records",
    "IndexProgress": "indexing.report",
    "IndexReport": "indexing.report",
    "Library": "library",
    "LibraryPhoto": "store.records",
    "LibraryStatus": "store.status",
    "People": "store.people",
    "Person": "store.people",
    "PersonMatch": "store.records",
    "PhotoHit": "store.records",
    "QueryPerson": "search.query_people",
    "StoredFace": "store.records",
    "contact_sheet": "pictures.sheet",
    "default_library": "store.location",
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
