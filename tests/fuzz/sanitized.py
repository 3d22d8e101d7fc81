"""Builds a copy of the package whose kernels stop at the first bad access or undefined operation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

__all__ = ["sanitized"]


def sanitized(folder: Path) -> dict[str, str]:
    """Build the copy in a folder with AddressSanitizer and UndefinedBehaviorSanitizer.

    Returns the environment in which Python imports it.
    """
    import setnet

    package = folder / "setnet"
    shutil.copytree(Path(setnet.__file__).parent, package, ignore=shutil.ignore_patterns("*.so"))
    kernels = package / "engine" / "kernels"
    compiler = os.environ.get("CC", "gcc")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-g", "-O1", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all",
         f"-I{sysconfig.get_path('include')}", *map(str, sorted((kernels / "c").rglob("*.c"))),
         "-o", str(kernels / f"_kernels{sysconfig.get_config_var('EXT_SUFFIX')}")],
        check=True,
    )  # fmt: skip
    runtime = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {
        **os.environ,
        "PYTHONPATH": str(folder),
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    }
