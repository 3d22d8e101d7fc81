"""Settings of the server: address, token and all limits."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path

from setnet.errors import InvalidInputError
from setnet.system import usable_cores

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Settings of the server.

    Attributes
    ----------
    host, port : where to listen; port 0 takes a free one
    token : what clients must show; None (no token) is accepted on loopback addresses only
    read_token : another token, whose holder may look and search, and change nothing
    uploads : a folder for photos that other programs send, which is indexed; None keeps none
    cors : origins of other pages that may call the API
    behind_proxy : believe X-Forwarded-Proto and X-Forwarded-For, which a proxy in front must set
    wrong_tokens : different wrong tokens that one address may show within a minute
    max_upload, max_pixels : largest image, in bytes and decoded
    max_session_body, max_body : largest body of a session, and largest JSON body apart from images in it
    max_in_flight : bytes of request bodies held at one time, over all clients
    body_seconds : how long a client may take to send a body
    face_workers, face_queue, face_seconds : processes that find faces, images that may wait for them, and
        how long one image may take
    draw_seconds : how long the thumbnail of a photo may take
    search_threads, search_queue : searches at one time, and searches that may wait
    face_lifetime : seconds that faces found in an upload can be referred to
    answer_lifetime, max_answers : seconds that an answer is kept for its next page after the last one, and
        bytes of all that are kept
    """

    host: str = "127.0.0.1"
    port: int = 8422
    token: str | None = field(default=None, repr=False)
    read_token: str | None = field(default=None, repr=False)
    uploads: Path | None = None
    cors: tuple[str, ...] = ()
    behind_proxy: bool = False
    wrong_tokens: int = 10
    max_upload: int = 64 * MEGABYTE
    max_pixels: int = 64_000_000
    max_session_body: int = 2048
    max_body: int = 4 * MEGABYTE
    max_in_flight: int = 512 * MEGABYTE
    body_seconds: float = 60.0
    face_workers: int = 1
    face_queue: int = 8
    face_seconds: float = 60.0
    draw_seconds: float = 30.0
    search_threads: int = field(default_factory=usable_cores)
    search_queue: int = 256
    face_lifetime: float = 1800.0
    answer_lifetime: float = 600.0
    max_answers: int = 64 * MEGABYTE

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidInputError(f"port {self.port}: a number from 0 to 65535 is expected")
        if any(token is not None and len(token) < 16 for token in (self.token, self.read_token)):
            raise InvalidInputError("the token is shorter than 16 characters: take a longer one, or none")
        if self.read_token is not None and self.token in (None, self.read_token):
            raise InvalidInputError("a token for reading needs another one for everything else")
        if self.token is None and not is_loopback(self.host):
            raise InvalidInputError(
                f"{self.host} can be reached by others: a token is needed (set SETNET_TOKEN, or let "
                "`setnet serve` make one)"
            )
        if self.token is None and self.behind_proxy:
            raise InvalidInputError("a server behind a proxy can be reached by others: a token is needed")
        for origin in self.cors:
            if not re.fullmatch(r"https?://[^/*\s]+", origin):
                raise InvalidInputError(f"--cors {origin}: one origin is expected, as in https://example.org")


def is_loopback(host: str) -> bool:
    """Tell whether an address or name means this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("[::1]"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
