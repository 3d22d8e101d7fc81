"""Photos and people as JSON."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from setnet.library import shown

if TYPE_CHECKING:
    from setnet.library import LibraryPhoto, NamedPeople, PhotoHit, StoredFace

__all__ = ["hit_record", "photo_record"]


def photo_record(photo: LibraryPhoto) -> dict[str, Any]:
    """Return a photo with the boxes of its faces."""
    folder, name = os.path.split(photo.stored_path)
    return {
        "id": photo.id,
        "name": shown(name),
        "folder": shown(folder),
        "version": photo.content[:12],
        "taken": photo.taken.isoformat() if photo.taken else None,
        "width": photo.width,
        "height": photo.height,
        "bytes": photo.size,
        "faces": [{"box": _box(face)} for face in photo.faces],
    }


def named_faces(photo: LibraryPhoto, descriptors: Any, people: NamedPeople) -> list[dict[str, Any]]:
    """Return a photo's faces with quality and the saved people they look like."""
    told = []
    for face, descriptor in zip(photo.faces, descriptors, strict=False):
        name, similarity = people.name_of(descriptor)
        told.append(
            {
                "box": _box(face),
                "score": round(face.score, 4),
                "quality": dict(face.quality),
                "person": name or None,
                "similarity": round(similarity, 4) if name else None,
            }
        )
    return told


def hit_record(hit: PhotoHit, numbers: dict[str, int]) -> dict[str, Any]:
    """Return a hit; `numbers` are the places of the people in the query."""
    photo = photo_record(hit.photo)
    return {
        "photo": photo,
        "score": round(hit.score, 6),
        "matches": [
            {
                "person": numbers[match.person],
                "name": match.person,
                "face": match.face,
                "similarity": round(match.similarity, 4),
                "box": photo["faces"][match.face]["box"],
            }
            for match in hit.matches
        ],
    }


def _box(face: StoredFace) -> list[int]:
    # Whole pixels: a page of hits has hundreds of boxes, and fractions would be half of its bytes.
    return [round(face.x0), round(face.y0), round(face.x1), round(face.y1)]
