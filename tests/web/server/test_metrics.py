from __future__ import annotations

from setnet.web.server.metrics import Metrics


def test_requests_are_counted_by_route_and_gauges_show_the_last_value() -> None:
    metrics = Metrics()
    for seconds in (0.02, 3.0):
        metrics.requests.labels("/search", "POST", 200).inc()
        metrics.durations.labels("/search").observe(seconds)
    metrics.text({"library_photos": 4})
    text = metrics.text({"library_photos": 5}).decode()
    assert 'setnet_http_requests_total{method="POST",route="/search",status="200"} 2.0' in text
    assert 'setnet_http_request_duration_seconds_bucket{le="0.025",route="/search"} 1.0' in text
    assert 'setnet_http_request_duration_seconds_bucket{le="+Inf",route="/search"} 2.0' in text
    assert "\nsetnet_library_photos 5.0\n" in text


def test_two_servers_of_one_process_count_apart() -> None:
    first, second = Metrics(), Metrics()
    first.searches.observe(0.1)
    assert "setnet_search_duration_seconds_count 1.0" in first.text({}).decode()
    assert "setnet_search_duration_seconds_count 0.0" in second.text({}).decode()
