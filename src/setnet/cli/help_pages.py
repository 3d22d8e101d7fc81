"""All help pages as one Markdown page: `python -m setnet.cli.help_pages docs/cli.md`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

__all__ = ["help_pages"]

_WIDTH = 100


def help_pages() -> str:
    """Return docs/cli.md: what each command prints for `--help`."""
    import typer

    from setnet.cli.app import COMMANDS, app, command

    whole = typer.main.get_command(app)
    parts = ["# The command line", "", _PREFACE, "", *_page("setnet", whole)]
    for name in COMMANDS:
        found = command(name)
        if found is not None:
            parts += _page(f"setnet {name}", found)
            for inner, sub in getattr(found, "commands", {}).items():
                parts += _page(f"setnet {name} {inner}", sub, level=3)
    return "\n".join(parts).rstrip() + "\n"


_PREFACE = """\
Every command leaves with 0 when all went well, 1 when nothing was found or some files failed, and 2 when it
was called wrongly; 130 after Ctrl-C. Results go to standard output, remarks to standard error. This page is
made by `python -m setnet.cli.help_pages docs/cli.md`, and a test compares it."""


def _page(path: str, command: Any, level: int = 2) -> list[str]:
    from typer import Context

    context = Context(command, info_name=path, terminal_width=_WIDTH, max_content_width=_WIDTH)
    text = command.get_help(context)
    return [f"{'#' * level} `{path}`", "", "```text", text.rstrip(), "```", ""]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m setnet.cli.help_pages docs/cli.md")
    Path(sys.argv[1]).write_text(help_pages(), encoding="utf-8")
