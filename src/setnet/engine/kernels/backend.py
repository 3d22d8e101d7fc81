"""Picks the compiled kernels, or their NumPy reference with a warning when the extension is not built."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import ModuleType

from setnet.errors import choice_error
from setnet.system import usable_cores

kernels: ModuleType
try:
    from setnet.engine.kernels import _kernels as kernels
except ImportError:
    from setnet.engine.kernels import reference as kernels

    logging.getLogger(__name__).warning(
        "setnet's C extension is not built: searches use the NumPy reference and are slow. "
        "Install a C compiler and reinstall setnet"
    )

_level: str = kernels.levels()[-1]


def use(name: str) -> None:
    """Choose the kernels' instruction set by name; the fastest is the default."""
    global _level
    if name not in kernels.levels():
        raise choice_error("kernel level", name, kernels.levels())
    kernels.use_level(name)
    _level = name


def fine_bits() -> int:
    """Return how many of the nine bits a second look reads: eight where bytes are multiplied at once."""
    return 8 if _level == "avx512" else 9


def level() -> str:
    """Return the name of the instruction set in use."""
    return _level


if os.environ.get("SETNET_KERNELS"):
    use(os.environ["SETNET_KERNELS"])


@cache
def threads(work: str) -> ThreadPoolExecutor:
    """Return the threads for a kind of work, one per usable core; a fork gets threads of its own."""
    return ThreadPoolExecutor(usable_cores(), thread_name_prefix=f"setnet-{work}")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=threads.cache_clear)
