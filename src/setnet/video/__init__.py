"""Videos to shots to people: decode, find the limits of shots, follow faces, one element per person."""

from setnet.video.frame_descriptors import FrameSets, frame_sets
from setnet.video.frames import frames_at
from setnet.video.people import ShotPerson
from setnet.video.watcher import Shot, Watched, watch

__all__ = [
    "FrameSets",
    "Shot",
    "ShotPerson",
    "Watched",
    "frame_sets",
    "frames_at",
    "watch",
]
