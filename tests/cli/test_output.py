from __future__ import annotations

import sys

import pytest

from setnet.cli.output import ProgressBar
from tests.support.command_line import Terminal


def test_without_a_terminal_progress_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar(line_seconds=0) as bar:
        bar.show("reading", 1000, 2000, "8 photos/s")
        bar.show("captions", 7)
    with ProgressBar() as bar:
        bar.show("over soon", 1, 2)
    with ProgressBar(silent=True, line_seconds=0) as bar:
        bar.show("for a program", 1, 2)
    assert capsys.readouterr().err.splitlines() == ["reading: 1,000 of 2,000 8 photos/s", "captions: 7"]


def test_a_stage_of_unknown_length_may_follow_one_of_known_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressBar() as bar:
        bar.show("reading", 3, 5)
        bar.show("captions", 7)
        bar.stop()  # as before a question
        bar.show("reading", 4, 5)
    drawn = terminal.getvalue()
    for text in ("captions", "7/?", "4/5"):
        assert text in drawn
    assert "7/5" not in drawn
