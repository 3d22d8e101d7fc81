"""All commands by name. A command's file is imported when it is called, not to show `--help`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, NoReturn

import typer

from setnet.cli.options import HELP_NAMES, CommandGroup
from setnet.cli.output import say
from setnet.errors import SetNetError

# In the order of a newcomer's path.
PANELS: dict[str, dict[str, str]] = {
    "Photos": {
        "demo": "See it work: make an album, index it, run three queries.",
        "index": "Find the faces in folders of photos and keep them in a library.",
        "search": "Find the photos that contain these people: all of them first, then all but one.",
        "searches": "List and remove saved searches.",
        "people": "Find who is in the photos; save people by name, edit them; undo changes.",
        "serve": "Open the library as a web page and REST API.",
        "duplicates": "Find copies of one photograph: resized, cropped, recoloured, mirrored.",
        "faces": "Show the faces found in one photo.",
        "models": "List the detector and descriptor models and check their hashes; add others.",
    },
    "Safe keeping": {
        "status": "Show what is in the library and which files could not be read.",
        "check": "Verify every stored byte of the library.",
        "repair": "Repair a damaged library, and tell what could not be saved.",
        "backup": "Copy the library to another folder while it is used.",
        "restore": "Bring a backup back.",
        "forget": "Delete photos' faces, or everything, for good.",
    },
    "Connections": {
        "tags": "Write who is in the photos to .xmp sidecars, for other programs.",
        "immich": "Search the photos of an Immich server by several of its people at once.",
        "pg": "Search the faces in a table of your own PostgreSQL.",
        "export": "Write the library's descriptors to a file.",
    },
    "Research": {
        "describe": "Write descriptors of folders of photos to a file, labelled by folder name.",
        "calibrate": "Fit a score to your own labelled descriptors.",
        "train": "Train descriptors and set heads.",
        "evaluate": "Run the experiments of the paper on your own descriptors.",
        "collect": "Make a labelled data set of people together out of photos with captions.",
    },
}
COMMANDS = {name: about for panel in PANELS.values() for name, about in panel.items()}


_NOT_THERE = "cannot open shared object file"  # the loader's words for a missing library of the system
_WITHOUT_WINDOWS = (
    "A library of the system is missing. Where that is one for windows or graphics, such as libGL or libxcb, "
    "take the OpenCV that needs none: pip install --force-reinstall --no-deps opencv-python-headless"
)

_COMPUTING = ("train", "calibrate", "evaluate")
# Commands that share a file; every other command is in a file of its name.
_FILE_OF = {
    **dict.fromkeys(("status", "check", "repair", "backup", "restore", "forget"), "library"),
    **dict.fromkeys(("faces", "duplicates"), "photos"),
    **dict.fromkeys(("describe", "export", "calibrate"), "descriptors"),
}


def command(name: str) -> Any:
    """Return the command `name`, importing its file, or None if there is none."""
    if name not in COMMANDS:
        return None
    if name not in _COMPUTING:
        # Their work is shared out by processes, or by the engine's own threads: threads of the linear
        # algebra library would only spin beside them. NumPy reads this when it is imported.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    found: Any = typer.main.get_command(import_module(f"setnet.cli.{_FILE_OF.get(name, name)}").app)
    if name in _FILE_OF:
        found = found.commands[name]
    found.name = name
    return found


def _can_open_page() -> bool:
    """Return whether somebody sits before this machine, and the page is installed."""
    has_display = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return sys.stdin.isatty() and bool(has_display) and find_spec("uvicorn") is not None


class _LazyCommands(CommandGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing and _can_open_page():
            args = ["serve", "--open"]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return command(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        self.write_panels({title: list(panel.items()) for title, panel in PANELS.items()}, formatter)


app = typer.Typer(
    cls=_LazyCommands, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=HELP_NAMES
)


def _version(is_given: bool) -> None:
    if is_given:
        from setnet import __version__

        typer.echo(f"setnet {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit status: 0 ok; 1 nothing was found, or some files failed; 2 wrong use, or it could not be "
    "done. `setnet COMMAND --help` shows the options of a command."
)
def setnet(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the photos that contain a given set of people. Nothing leaves this machine.

    Start with `setnet demo`, then `setnet index ~/Photos` and `setnet search anna.jpg ben.jpg`. `setnet`
    alone opens the page, where there is a display.
    """


def run(commands: typer.Typer = app, name: str = "setnet") -> NoReturn:
    """Run the command line, or other commands by its rules, and exit: 0, 1, 2, or 130 after Ctrl-C."""
    try:
        commands(prog_name=name)
        sys.exit(0)
    except SetNetError as error:
        message = str(error)
    except OSError as error:  # a folder or file that this user may not use
        message = f"{error.filename or 'the system'}: {error.strerror or error}"
    except ImportError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            sys.exit(130)  # Ctrl-C while a library in C was being loaded
        if _NOT_THERE not in str(error):
            raise
        message = f"{error}\n{_WITHOUT_WINDOWS}"
    except MemoryError:
        message = "not enough memory"
    say(f"setnet: {message}")
    sys.exit(2)
