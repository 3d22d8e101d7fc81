"""Packets: which of them no other picture needs."""

from __future__ import annotations

import pytest

from setnet.video.capture import Packet, PacketGroup, _is_disposable


@pytest.mark.parametrize(
    ("codec", "headers", "is_disposable"),
    [
        ("h264", (0x06, 0x41), False),  # information, then a slice that others refer to
        ("h264", (0x01,), True),
        ("h264", (0x67, 0x68, 0x65), False),  # parameters, then a key picture
        ("hevc", (0x00,), True),  # TRAIL_N
        ("hevc", (0x02,), False),  # TRAIL_R
        ("hevc", (0x40, 0x26), False),  # parameters, then a key picture
        ("h264", (), False),
    ],
)
def test_the_first_slice_tells_whether_others_need_it(
    codec: str, headers: tuple[int, ...], is_disposable: bool
) -> None:
    data = b"".join(b"\0\0\0\1" + bytes([header, 1, 2, 3]) for header in headers)
    assert _is_disposable(data, codec) is is_disposable


def test_pictures_of_a_higher_temporal_layer_are_needed_by_none_below() -> None:
    assert _is_disposable(b"\0\0\1" + bytes([0x02, 2, 0]), "hevc")
    assert not _is_disposable(b"\0\0\1" + bytes([0x02]), "hevc")


def test_of_a_group_only_what_is_needed_is_decoded() -> None:
    key = Packet(1.0, b"k" * 100, False)
    others = [Packet(0.9, b"l", False), Packet(1.2, b"p", False), Packet(1.1, b"b", True)]
    group = PacketGroup(key, others)
    assert [packet.data[:1] for packet in group.needed_packets(9.0)] == [b"k", b"p"]
    assert group.seconds == pytest.approx(0.2)
    assert group.motion == pytest.approx(0.01)


def test_a_picture_that_one_shown_before_it_needs_is_decoded() -> None:
    others = [Packet(1.4, b"p", False), Packet(1.2, b"b", False), Packet(1.8, b"q", False)]
    group = PacketGroup(Packet(1.0, b"k", False), others)
    assert [packet.data for packet in group.needed_packets(1.3)] == [b"k", b"p", b"b"]
    assert [packet.data for packet in group.needed_packets(0.0)] == [b"k"]


def test_many_bytes_tell_of_something_new() -> None:
    others = [Packet(1.0 + n / 10, b"p" * size, False) for n, size in enumerate((5, 80, 30, 4))]
    group = PacketGroup(Packet(1.0, b"k" * 100, False), others)
    assert group.loud_until == pytest.approx(1.2)
    assert PacketGroup(group.key, others[:1]).loud_until is None
