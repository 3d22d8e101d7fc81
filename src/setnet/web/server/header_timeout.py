"""HTTP connections with a time limit for the request's headers."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_HEADER_SECONDS = 20.0


class HeaderTimeoutProtocol(H11Protocol):
    """Closes a connection whose request line and headers do not arrive in time.

    Otherwise a few hundred clients that send a byte a minute would keep everyone else out.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the clock with the connection."""
        super().connection_made(transport)
        self._watch(True)

    def data_received(self, data: bytes) -> None:
        """Stop the clock once a request has begun; start it again for a half-sent next one."""
        super().data_received(data)
        self._watch(self.conn.their_state is h11.IDLE)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._watch(False)
        super().connection_lost(exc)

    def _watch(self, waits_for_headers: bool) -> None:
        if waits_for_headers and self._deadline is None:
            self._deadline = self.loop.call_later(_HEADER_SECONDS, self._too_slow)
        elif not waits_for_headers and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
