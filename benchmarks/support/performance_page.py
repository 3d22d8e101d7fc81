"""What every section of docs/performance.md says about its origin, and how it gets onto the page."""

from __future__ import annotations

import os
import platform
from datetime import date
from importlib.metadata import version
from pathlib import Path

from setnet.engine import kernel_level
from setnet.evaluate import processor, replace_block
from setnet.system import usable_cores


def machine(*packages: str) -> str:
    """Return what the figures were measured on, with the versions of some packages."""
    versions = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)]
    made = f"{processor()}, {usable_cores()} cores, kernels {kernel_level()}, {', '.join(versions)}"
    return f"{made}, load {os.getloadavg()[0]:.1f}, {date.today()}"


def write_section(page: Path, name: str, text: str) -> None:
    """Put the text between its marks on the page, or at the end of a page without them."""
    page.write_text(replace_block(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")
