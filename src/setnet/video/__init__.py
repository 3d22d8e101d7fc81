"""Videos to shots to people: decode, find cuts, follow faces, one element per person."""

from setnet.video.frames import frames_at
from setnet.video.people import ShotPerson
from setnet.video.watcher import Shot, Watched, watch

__all__ = [
    "Shot",
    "ShotPerson",
    "Watched",
    "frames_at",
    "watch",
]
