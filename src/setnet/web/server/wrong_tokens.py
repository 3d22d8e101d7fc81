"""Limit on wrong tokens by network address: whoever shows many different ones is guessing."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from time import monotonic

_SECONDS = 60.0
_MOST_ADDRESSES = 10_000


@dataclass(slots=True)
class _Guesses:
    until: float
    digests: set[bytes] = field(default_factory=set)


class WrongTokens:
    """Counts different wrong tokens by address, and blocks an address for a minute after `most` of them.

    The same wrong token again is not another guess: a browser shows an outdated cookie with every picture.
    """

    def __init__(self, most: int, clock: Callable[[], float] = monotonic) -> None:
        self._most = most
        self._clock = clock
        self._by_address: dict[str, _Guesses] = {}

    def add(self, address: str, token: str) -> None:
        """Count a wrong token; the last one allowed begins the time for which the address is blocked."""
        now, place = self._clock(), _network(address)
        guesses = self._by_address.get(place)
        if guesses is None or guesses.until <= now:
            self._by_address.pop(place, None)  # so that the order is that of time
            guesses = self._by_address[place] = _Guesses(now + _SECONDS)
            if len(self._by_address) > _MOST_ADDRESSES:
                del self._by_address[next(iter(self._by_address))]
        guesses.digests.add(blake2b(token.encode("utf-8", "replace"), digest_size=16).digest())
        if len(guesses.digests) >= self._most:
            guesses.until = now + _SECONDS

    def seconds_blocked(self, address: str) -> int:
        """Return for how many seconds more an address is blocked; 0 when it is not."""
        guesses = self._by_address.get(_network(address))
        if guesses is None or len(guesses.digests) < self._most:
            return 0
        return max(0, math.ceil(guesses.until - self._clock()))


def _network(address: str) -> str:
    """Return the address, or the /64 network of an IPv6 one: a single host owns all of that."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((int(parsed), 64), strict=False))
