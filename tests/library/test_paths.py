from __future__ import annotations

import sys
from pathlib import Path

import pytest

from setnet.library import default_library


def test_the_environment_chooses_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETNET_LIBRARY", "~/elsewhere")
    assert default_library() == Path.home() / "elsewhere"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other data folders")
@pytest.mark.parametrize(
    ("data_home", "expected"),
    [("", "home/.local/share/setnet/library"), ("data", "data/setnet/library")],
)
def test_on_linux_the_library_is_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_home: str, expected: str
) -> None:
    monkeypatch.delenv("SETNET_LIBRARY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", data_home and str(tmp_path / data_home))
    assert default_library() == tmp_path / expected
