"""Threads kept for one kind of work, and new ones after a fork, as those of the parent do not come along."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from setnet.system import usable_cores


@cache
def threads(work: str) -> ThreadPoolExecutor:
    """Return the threads for a kind of work, one per usable core."""
    return ThreadPoolExecutor(usable_cores(), thread_name_prefix=f"setnet-{work}")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=threads.cache_clear)
