"""What is known of a photo in which near-duplicates are looked for."""

from __future__ import annotations

from dataclasses import dataclass

from setnet.library.duplicates.dense_sift import Floats


@dataclass(frozen=True, slots=True, eq=False)
class DescribedPhoto:
    """A photo file with its content's hash, its size in pixels and its VLADs, as it is and mirrored."""

    path: bytes
    hash: bytes
    pixels: int
    vlads: Floats
