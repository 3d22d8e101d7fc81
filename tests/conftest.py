"""What holds for every test: the same examples in every run, and no clock that could fail a slow machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("same every time", derandomize=True, deadline=None, database=None)
settings.load_profile("same every time")
