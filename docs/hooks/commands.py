"""All help pages as one Markdown page, for the reference that `make docs` builds."""

from __future__ import annotations

from typing import Any

_WIDTH = 100


EXIT_CODES = {
    0: "everything went well",
    1: "nothing was found, or some files failed; what was found is printed",
    2: "the command was used wrongly, or it could not be done: the message says why",
    130: "Ctrl-C; what is complete is kept",
}
ENVIRONMENT = {
    "SETNET_LIBRARY": "the library, unless `--library` names another",
    "SETNET_TOKEN": "the token that clients of `setnet serve` must show",
    "SETNET_READ_TOKEN": "another token, whose holder may look and search, and change nothing",
    "SETNET_MODELS": "a TOML file with models of your own, or its folder",
    "SETNET_CACHE": "where adapted copies of models are kept",
    "SETNET_KERNELS": "the kernels, by default the fastest that the processor can run: `avx512` or `avx2` on "
    "x86, `neon_dot` or `neon` on ARM, `portable` (any C compiler), `reference` (NumPy)",
    "SETNET_PROVIDERS": "what runs the networks instead of the CPU, such as `openvino` or `cuda`, if the "
    "onnxruntime that is installed has it; setnet compares its answers with the CPU's first",
}


def help_pages() -> str:
    """Return a page with exit codes, environment, and what each command prints for `--help`."""
    import typer

    from setnet.cli.app import COMMANDS, app, command

    whole = typer.main.get_command(app)
    parts = [
        "# The command line",
        "",
        "Results go to standard output, messages to standard error. `--json` prints results for programs.",
        "",
        *_table("exit code", {str(code): text for code, text in EXIT_CODES.items()}),
        *_table("environment", {f"`{name}`": text for name, text in ENVIRONMENT.items()}),
        *_page("setnet", whole),
    ]
    for name in COMMANDS:
        found = command(name)
        parts += _page(f"setnet {name}", found)
        for inner, sub in getattr(found, "commands", {}).items():
            parts += _page(f"setnet {name} {inner}", sub, level=3)
    return "\n".join(parts).rstrip() + "\n"


def _table(title: str, rows: dict[str, str]) -> list[str]:
    return [
        f"| {title} | meaning |",
        "|---|---|",
        *(f"| {name} | {text} |" for name, text in rows.items()),
        "",
    ]


def _page(path: str, command: Any, level: int = 2) -> list[str]:
    from typer import Context

    from setnet.cli.options import HELP_NAMES

    names = HELP_NAMES["help_option_names"]
    context = Context(
        command,
        info_name=path,
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        help_option_names=names,
    )
    text = command.get_help(context)
    return [f"{'#' * level} `{path}`", "", "```text", text.rstrip(), "```", ""]
