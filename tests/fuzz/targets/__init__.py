"""The targets: each module has a context manager `target(folder)` that yields a function of bytes.

The function raises only on a finding. What it needs it makes in the folder, and the bytes decide everything
else (`tests.fuzz.choices`), so that an input can be kept and run again.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """How a target is run.

    Attributes
    ----------
    inputs, seconds
        How many inputs a long run tries, and its time budget.
    short
        How many inputs the ordinary tests try.
    sanitized
        Whether it reaches the kernels, which a long run then builds with sanitizers.
    """

    inputs: int
    seconds: float
    short: int
    sanitized: bool = False


TARGETS = {
    "segment_files": Target(130_000, 3600, 150, sanitized=True),
    "catalog_files": Target(20_000, 1200, 40),
    "commit_logs": Target(20_000, 1200, 40),
    "npz_files": Target(250_000, 1200, 300),
    "head_files": Target(200_000, 900, 200),
    "http_requests": Target(150_000, 2400, 100),
    "photo_files": Target(20_000, 1800, 60),
    "worker_replies": Target(60_000, 600, 300),
    "library_files": Target(10_000, 900, 40),
    "people_files": Target(20_000, 1200, 60),
    "face_tags": Target(60_000, 600, 300),
    "settings": Target(100_000, 600, 500),
    "conditions": Target(130_000, 600, 300),
    "searchers": Target(60_000, 900, 100),
    "model_files": Target(60_000, 600, 200),
}
