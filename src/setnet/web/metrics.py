"""Request and search metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The metrics of one server, in a registry of its own: several servers in one process stay apart."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "setnet_http_requests", "Requests answered.", ["route", "method", "status"], registry=registry
        )
        self.durations = Histogram(
            "setnet_http_request_duration_seconds",
            "Time from a request to the end of its answer.",
            ["route"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.searches = Histogram(
            "setnet_search_duration_seconds", "Time of the engine.", buckets=_BUCKETS, registry=registry
        )
        self.in_flight = Gauge(
            "setnet_http_requests_in_flight", "Requests being answered.", registry=registry
        )
        self._gauges: dict[str, Gauge] = {}

    def text(self, gauges: Mapping[str, float]) -> bytes:
        """Return all metrics in Prometheus' text format, with the present values of `gauges`."""
        for name, value in gauges.items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(f"setnet_{name}", "Present value.", registry=self._registry)
            self._gauges[name].set(value)
        return generate_latest(self._registry)


class RequestMetrics:
    """The middleware that counts requests, by the pattern of their address and not by the address.

    The header `Server-Timing` says how many milliseconds passed until the answer began.
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

        try:
            with self._metrics.in_flight.track_inprogress():
                await self._app(scope, receive, watched)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(route, method, status).inc()
            self._metrics.durations.labels(route).observe(perf_counter() - start)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
