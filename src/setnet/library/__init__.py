"""A photo library over the engine: scanning, incremental update, people, queries with conditions."""

from typing import TYPE_CHECKING

from setnet.lazy import lazy_names

__all__ = [
    "Answer",
    "Change",
    "Conditions",
    "DuplicateGroup",
    "DuplicateOptions",
    "Example",
    "FaceConflict",
    "FaceName",
    "FacesNamed",
    "FailedPhoto",
    "Group",
    "GroupFace",
    "GroupTotal",
    "GroupTotals",
    "GroupingReport",
    "Groups",
    "IndexProgress",
    "IndexReport",
    "Label",
    "Library",
    "LibraryBackup",
    "LibraryPhoto",
    "LibraryRepair",
    "LibraryStatus",
    "People",
    "PeopleExport",
    "PeopleImport",
    "PeopleTogether",
    "Person",
    "PersonMatch",
    "PersonPhotos",
    "PersonThresholds",
    "PhotoHit",
    "PhotoQuery",
    "QueryPerson",
    "Ranking",
    "SavedSearch",
    "StoredFace",
    "Suggestion",
    "Tag",
    "contact_sheet",
    "default_library",
    "describe_photos",
    "find_duplicates",
    "group_descriptors",
    "group_sheet",
    "index_into",
    "read_descriptors",
    "write_descriptor_file",
]

if TYPE_CHECKING:
    from setnet.library.answer import Answer, GroupTotal, PersonThresholds
    from setnet.library.appearances import PeopleTogether
    from setnet.library.backup import LibraryBackup
    from setnet.library.clustering import group_descriptors
    from setnet.library.collection import index_into
    from setnet.library.creation import LibraryStatus
    from setnet.library.describe import describe_photos
    from setnet.library.descriptor_files import read_descriptors, write_descriptor_file
    from setnet.library.duplicates import DuplicateGroup, DuplicateOptions, find_duplicates
    from setnet.library.grouping import GroupingReport
    from setnet.library.groups import Group, GroupFace, Groups, GroupTotals, Suggestion
    from setnet.library.index_run import IndexProgress, IndexReport
    from setnet.library.library import Library
    from setnet.library.paths import default_library
    from setnet.library.people import People
    from setnet.library.people_edits import FaceConflict, FaceName, FacesNamed
    from setnet.library.people_exchange import PeopleExport, PeopleImport
    from setnet.library.person import Example, Label, Person, Tag
    from setnet.library.photos import FailedPhoto, LibraryPhoto, PersonMatch, PhotoHit, StoredFace
    from setnet.library.query import Conditions, PhotoQuery, QueryPerson, SavedSearch
    from setnet.library.repair import LibraryRepair
    from setnet.library.search import PersonPhotos, Ranking
    from setnet.library.sheets import contact_sheet, group_sheet
    from setnet.library.undo import Change
else:
    __getattr__, __dir__ = lazy_names(__name__)
