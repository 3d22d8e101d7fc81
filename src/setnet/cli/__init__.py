"""The command line: one thin file per command."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line; the `setnet` script."""
    from setnet.cli.app import run

    run()
