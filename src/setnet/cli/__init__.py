"""The command line: one file per group of commands."""

from __future__ import annotations

import sys

from setnet.lazy import missing_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line; the `setnet` script."""
    try:
        from setnet.cli.app import run

        run()
    except KeyboardInterrupt:  # while modules were being imported, or on the way out
        sys.exit(130)
    except ModuleNotFoundError as error:
        missing = missing_extra("this command", error)
        if missing is None:
            raise
        print(f"setnet: {missing}", file=sys.stderr)
        sys.exit(2)
