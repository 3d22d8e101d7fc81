"""Faces found in uploads, remembered for a while, in memory only."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from time import monotonic

from setnet.library import Example
from setnet.web.server.problems import Problem

_MOST = 4096


class UploadedFaces:
    """Faces by a short-lived id; the oldest go first when there are many."""

    def __init__(self, lifetime: float) -> None:
        self._lifetime = lifetime
        self._faces: OrderedDict[str, tuple[float, Example]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._faces)

    def add(self, face: Example) -> str:
        """Remember a face and return its id."""
        face_id = f"f-{secrets.token_urlsafe(12)}"
        with self._lock:
            while len(self._faces) >= _MOST:
                self._faces.popitem(last=False)
            self._faces[face_id] = (monotonic() + self._lifetime, face)
        return face_id

    def drop_old(self) -> None:
        """Forget the faces whose time is over."""
        with self._lock:
            now = monotonic()
            while self._faces and next(iter(self._faces.values()))[0] <= now:
                self._faces.popitem(last=False)

    def get(self, face_id: str) -> Example:
        """Return a face; one that is too old is an error that says what to do."""
        with self._lock:
            expires, face = self._faces.get(face_id, (0.0, None))
        if face is None or expires < monotonic():
            minutes = self._lifetime / 60
            raise Problem(
                404,
                f"no face {face_id[:40]!r}: ids are kept for {minutes:.0f} minutes after POST /faces; "
                "upload the photo again",
            )
        return face

    def clear(self) -> None:
        """Forget all faces."""
        with self._lock:
            self._faces.clear()
