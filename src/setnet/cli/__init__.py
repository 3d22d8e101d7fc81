"""The command line: one file per group of commands."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line; the `setnet` script."""
    from setnet.cli.app import run

    run()
