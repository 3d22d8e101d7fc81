"""Counters in the text format of Prometheus."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Metrics", "RequestMetrics"]

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """What the server counts about its requests and searches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_BUCKETS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)
        self.in_flight = 0

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        with self._lock:
            self._requests[route, method, status] += 1
            self._observe(f'http_request_duration_seconds{{route="{route}"}}', seconds)

    def observe(self, name: str, seconds: float) -> None:
        """Count a duration."""
        with self._lock:
            self._observe(name, seconds)

    def _observe(self, name: str, seconds: float) -> None:
        self._seconds[name] += seconds
        self._buckets[name][sum(seconds > limit for limit in _BUCKETS)] += 1

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return everything as text; `gauges` are numbers of the moment."""
        lines = ["# TYPE setnet_http_requests_total counter"]
        with self._lock:
            for (route, method, status), number in sorted(self._requests.items()):
                labels = f'route="{route}",method="{method}",status="{status}"'
                lines.append(f"setnet_http_requests_total{{{labels}}} {number}")
            typed: set[str] = set()
            for name in sorted(self._buckets):
                base, _, labels = name.partition("{")
                if base not in typed:
                    lines.append(f"# TYPE setnet_{base} histogram")
                    typed.add(base)
                lines += _histogram(base, labels.rstrip("}"), self._buckets[name], self._seconds[name])
        for name, value in sorted({**gauges, "http_requests_in_flight": self.in_flight}.items()):
            lines += [f"# TYPE setnet_{name} gauge", f"setnet_{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _histogram(base: str, labels: str, buckets: list[int], seconds: float) -> list[str]:
    comma = "," if labels else ""
    lines, total = [], 0
    for limit, number in zip((*_BUCKETS, "+Inf"), buckets, strict=True):
        total += number
        lines.append(f'setnet_{base}_bucket{{{labels}{comma}le="{limit}"}} {total}')
    own = f"{{{labels}}}" if labels else ""
    return [*lines, f"setnet_{base}_sum{own} {seconds:.6f}", f"setnet_{base}_count{own} {total}"]


class RequestMetrics:
    """The layer that counts requests, by the pattern of their address and not by the address.

    The header `Server-Timing` tells how many milliseconds passed until the answer began.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                spent = f"total;dur={(perf_counter() - start) * 1000:.1f}"
                message["headers"] = [*message["headers"], (b"server-timing", spent.encode())]
            await send(message)

        self._metrics.in_flight += 1
        try:
            await self._app(scope, receive, watched)
        finally:
            self._metrics.in_flight -= 1
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.count(route, method, status, perf_counter() - start)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
