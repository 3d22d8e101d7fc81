"""How wrong tokens are counted, by address and time."""

from __future__ import annotations

from setnet.web.guard import TokenRateLimit


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_block_ends_after_a_minute_and_the_count_starts_again() -> None:
    clock = Clock()
    tokens = TokenRateLimit(2, clock)
    tokens.add("192.0.2.1", "a")
    clock.now += 30
    assert tokens.seconds_blocked("192.0.2.1") == 0
    tokens.add("192.0.2.1", "b")
    assert tokens.seconds_blocked("192.0.2.1") == 60
    clock.now += 60
    assert tokens.seconds_blocked("192.0.2.1") == 0
    tokens.add("192.0.2.1", "c")
    assert tokens.seconds_blocked("192.0.2.1") == 0


def test_one_host_cannot_change_its_address_within_its_network() -> None:
    tokens = TokenRateLimit(2, Clock())
    tokens.add("2001:db8::1", "a")
    tokens.add("2001:db8::2", "b")
    assert tokens.seconds_blocked("2001:db8::3") == 60
    assert tokens.seconds_blocked("2001:db8:0:1::3") == 0


def test_many_addresses_are_not_remembered_without_end() -> None:
    tokens = TokenRateLimit(1, Clock())
    for number in range(20_000):
        tokens.add(f"10.0.{number // 256}.{number % 256}", "a")
    assert len(tokens._by_address) == 10_000
    assert tokens.seconds_blocked("10.0.78.31") == 60  # the latest
