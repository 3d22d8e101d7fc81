"""The command line: one file per group of commands."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; the `setnet` script."""
    try:
        from setnet.cli.app import run

        run()
    except KeyboardInterrupt:  # while modules were being imported, or on the way out
        sys.exit(130)
