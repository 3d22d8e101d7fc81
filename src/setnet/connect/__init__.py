"""What others keep: vectors in PostgreSQL, Qdrant or LanceDB, faces in Immich, tags of other programs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setnet.errors import missing_extra

__all__ = [
    "ExternalSets",
    "ImmichHit",
    "ImmichIndex",
    "ImmichPerson",
    "LanceSets",
    "PostgresSets",
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
    from setnet.connect.qdrant import QdrantSets
    from setnet.connect.tag_writing import TagsWritten, write_tags
else:
    # name: the module that defines it, imported on first use
    _MODULES = {
        "ExternalSets": "external",
        "ImmichHit": "immich",
        "ImmichIndex": "immich",
        "ImmichPerson": "immich_sync",
        "LanceSets": "lance",
        "PostgresSets": "postgres",
        "QdrantSets": "qdrant",
        "SyncReport": "immich_sync",
        "TagConflict": "face_tags",
        "TagImport": "face_tags",
        "TagsWritten": "tag_writing",
        "import_tags": "face_tags",
        "write_tags": "tag_writing",
    }

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            module = import_module(f"{__name__}.{_MODULES[name]}")
        except ModuleNotFoundError as error:
            raise missing_extra(__name__, error) or error from None
        value = globals()[name] = getattr(module, name)
        return value

    def __dir__() -> list[str]:
        return __all__
