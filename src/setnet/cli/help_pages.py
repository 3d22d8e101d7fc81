"""All help pages as one Markdown page, for the reference that `make docs` builds."""

from __future__ import annotations

from typing import Any

_WIDTH = 100


def help_pages() -> str:
    """Return a page with what each command prints for `--help`."""
    import typer

    from setnet.cli.app import COMMANDS, app, command

    whole = typer.main.get_command(app)
    parts = ["# The command line", "", _PREFACE, "", *_page("setnet", whole)]
    for name in COMMANDS:
        found = command(name)
        parts += _page(f"setnet {name}", found)
        for inner, sub in getattr(found, "commands", {}).items():
            parts += _page(f"setnet {name} {inner}", sub, level=3)
    return "\n".join(parts).rstrip() + "\n"


_PREFACE = """\
The exit status of every command is 0 when all went well, 1 when nothing was found or some files failed, 2
when it was called wrongly, and 130 after Ctrl-C. Results go to standard output, remarks to standard error."""


def _page(path: str, command: Any, level: int = 2) -> list[str]:
    from typer import Context

    context = Context(command, info_name=path, terminal_width=_WIDTH, max_content_width=_WIDTH)
    text = command.get_help(context)
    return [f"{'#' * level} `{path}`", "", "```text", text.rstrip(), "```", ""]
