"""Decides at which looks faces are looked for, and does it."""

from __future__ import annotations

from dataclasses import replace

from setnet.faces import FaceSettings, find_faces
from setnet.video.look import Look
from setnet.video.people.following import Following
from setnet.video.people.sighting import Sighting
from setnet.video.shots.limits import CUT
from setnet.video.shots.signature import Signature

USUAL = 1.0  # seconds between looks for faces
_SOON = 0.5  # after a cut or when somebody came or went
_SELDOM = 2.0  # while the same people stay
_UNCHANGED = 0.012  # distance of pictures in which nothing has changed
_SIDE = 960  # pixels of the longest side that is searched


def video_settings(settings: FaceSettings) -> FaceSettings:
    """Return the settings for pictures of videos: there are many, so they are smaller and searched faster.

    A detector that was chosen by the user stays.
    """
    detector = "cascade" if settings.detector == FaceSettings().detector else settings.detector
    return replace(settings, detector=detector, longest_side=min(settings.longest_side, _SIDE))


class FaceLooks:
    """The faces seen so far; they were looked for in `count` pictures."""

    def __init__(self, settings: FaceSettings) -> None:
        self._settings = video_settings(settings)
        self._faces = Following(self._settings)
        self._last: Signature | None = None
        self._wait = 0.0
        self.count = 0

    def take(self, look: Look, signature: Signature) -> None:
        """Look for faces if it is time to, or repeat the last finding where the picture is the same."""
        changed = 1.0 if self._last is None else signature.distance(self._last)
        if self._last is not None:
            if changed < CUT and look.time - self._faces.time < self._wait - 0.05:
                return
            if changed < _UNCHANGED:  # the same people at the same place
                self._faces.repeat(look.time)
                return
        found = find_faces(look.pixels, self._settings)
        self.count += 1
        if changed > CUT or len(found) != self._faces.count:
            self._wait = _SOON
        else:
            self._wait = min(_SELDOM, 2 * self._wait)
        self._faces.add(look.time, found, is_new=changed > CUT)
        self._last = signature

    def seen(self) -> list[tuple[float, list[Sighting]]]:
        """Return the faces of each look at which they were looked for."""
        return self._faces.sightings()
