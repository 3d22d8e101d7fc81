"""What others keep, such as vectors in PostgreSQL or faces in Immich, and searchers on other machines."""

from typing import TYPE_CHECKING

from setnet.lazy import lazy_names

__all__ = [
    "CollectionClient",
    "ExternalSets",
    "ImmichHit",
    "ImmichIndex",
    "ImmichPerson",
    "LanceSets",
    "PostgresSets",
    "PyLateIndex",
    "QdrantSets",
    "SyncReport",
    "TagConflict",
    "TagImport",
    "TagsWritten",
    "import_tags",
    "write_tags",
]

if TYPE_CHECKING:
    from setnet.connect.external import ExternalSets
    from setnet.connect.face_tags import TagConflict, TagImport, import_tags
    from setnet.connect.immich import ImmichHit, ImmichIndex
    from setnet.connect.immich_sync import ImmichPerson, SyncReport
    from setnet.connect.lance import LanceSets
    from setnet.connect.postgres import PostgresSets
    from setnet.connect.pylate import PyLateIndex
    from setnet.connect.qdrant import QdrantSets
    from setnet.connect.searchers import CollectionClient
    from setnet.connect.tag_writing import TagsWritten, write_tags
else:
    __getattr__, __dir__ = lazy_names(__name__)
