"""Decoding by hardware: used where it gives pictures, and never at the cost of reading a video at all."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import cv2
import pytest

from setnet.video import capture as hardware
from setnet.video.capture import SWITCH, allow_hardware, may_have_hardware, open_capture


class Driver:
    """OpenCV's videos on a machine with hardware that decodes, or fails to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, gives_pictures: bool) -> None:
        self.tried = 0
        plain, driver = cv2.VideoCapture, self

        class Capture:
            def __init__(self, source: Any, api: int, settings: list[int]) -> None:
                values = dict(zip(settings[::2], settings[1::2], strict=True))
                self.is_fast = bool(values.pop(cv2.CAP_PROP_HW_ACCELERATION, 0))
                driver.tried += self.is_fast
                self.plain = plain(source, api, [part for pair in values.items() for part in pair])

            def get(self, name: int) -> float:
                if name == cv2.CAP_PROP_HW_ACCELERATION:
                    return float(self.is_fast)
                return self.plain.get(name)

            def read(self) -> tuple[bool, Any]:
                return self.plain.read() if gives_pictures or not self.is_fast else (False, None)

            def __getattr__(self, name: str) -> Any:
                return getattr(self.plain, name)

        monkeypatch.setattr(cv2, "VideoCapture", Capture)
        monkeypatch.setattr(hardware, "_gives_pictures", {})
        monkeypatch.setattr(hardware, "_is_allowed", True)
        monkeypatch.setattr(sys, "platform", "win32")


@pytest.mark.parametrize("gives_pictures", [True, False])
def test_hardware_is_used_if_it_gives_pictures(
    clip: Path, monkeypatch: pytest.MonkeyPatch, gives_pictures: bool
) -> None:
    driver = Driver(monkeypatch, gives_pictures)
    sources: list[Any] = [str(clip), io.BytesIO(clip.read_bytes()), str(clip)]
    for source in sources:
        capture: Any = open_capture(source)
        assert capture.is_fast is gives_pictures
        assert capture.read()[0]
        assert capture.get(cv2.CAP_PROP_POS_MSEC) == 0
    assert driver.tried == (4 if gives_pictures else 1)


def test_hardware_can_be_switched_off(clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(monkeypatch, gives_pictures=True)
    monkeypatch.setenv(SWITCH, "off")
    assert not may_have_hardware()
    assert open_capture(str(clip)).read()[0]
    monkeypatch.delenv(SWITCH)
    allow_hardware(False)
    assert open_capture(str(clip)).read()[0]
    assert driver.tried == 0
