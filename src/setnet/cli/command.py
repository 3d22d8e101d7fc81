"""What every command does alike: take `--library` and `--json`, show progress, print its result, exit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

import typer

from setnet.cli.options import JsonOption, LibraryOption, PlainCommand
from setnet.cli.output import ProgressBar, print_json, print_table, print_text, say
from setnet.library.paths import default_library

if TYPE_CHECKING:
    from setnet.library import Library


class Rows(NamedTuple):
    """A table of a result, and what to say where it has no rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    empty: str = ""
    right: Sequence[str] = ()


class Result:
    """What a command found: `facts` for programs; for people lines of text and tables, and `remarks` besides.

    Remarks go to standard error; `status` is the exit status.
    """

    def __init__(
        self, facts: object, *parts: str | Rows, remarks: Iterable[str] = (), status: int | bool = 0
    ) -> None:
        self.facts, self.parts, self.remarks, self.status = facts, parts, remarks, int(status)

    def print(self, json: bool) -> None:
        """Print the result for programs or for people, and end with its exit status if that is not 0."""
        if json:
            print_json(self.facts)
        else:
            for part in self.parts:
                if isinstance(part, str):
                    print_text(part)
                elif part.rows:
                    print_table(part.columns, part.rows, part.right)
                elif part.empty:
                    say(part.empty)
            for remark in self.remarks:
                say(remark)
        if self.status:
            raise typer.Exit(self.status)


class Call:
    """One call of a command: the library that it means, and how it reports.

    `chosen` is the folder given with `--library`, if any; with `json` a program reads the result, and no
    progress is shown.
    """

    def __init__(self, chosen: Path | None = None, json: bool = False) -> None:
        self.chosen, self.json = chosen, json
        self._open = ExitStack()

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def place(self) -> Path:
        """The folder of the library: that of `--library`, of the environment, or the user's own."""
        return (self.chosen or default_library()).expanduser()

    @cached_property
    def library(self) -> Library:
        """The library, open until the command is done."""
        from setnet.library import Library

        return self._open.enter_context(Library.open(self.place))

    @cached_property
    def bar(self) -> ProgressBar:
        """The progress bar, which is taken away before the result is printed."""
        return self._open.enter_context(ProgressBar(silent=self.json))

    def tell(self, text: str) -> None:
        """Print a line on the way to the result, unless a program reads."""
        if not self.json:
            print_text(text)


Command = TypeVar("Command", bound=Callable[..., Result | None])


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    library: bool = True,
    json: bool = True,
    interrupted: str = "",
    panel: str | None = None,
) -> Callable[[Command], Command]:
    """Return a decorator that adds a function to an app as a command.

    The function's first parameter is the `Call`, the others are the command's own arguments and options; what
    it returns is printed. `--library` and `--json` are added to them, unless the command has no use for them.
    `interrupted` is what a user is told after Ctrl-C, `panel` the part of the group's help it stands in.
    """

    def add(function: Command) -> Command:
        def run(**given: Any) -> None:
            with Call(given.pop("library", None), given.pop("json", False)) as call:
                try:
                    result = function(call, **given)
                except KeyboardInterrupt:
                    if not interrupted:
                        raise
                    say(f"stopped; {interrupted}")
                    raise typer.Exit(130) from None
            if result is not None:
                result.print(call.json)

        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]
        shared = [("library", LibraryOption, None)] * library + [("json", JsonOption, False)] * json
        parameters = [one.replace(annotation=hints[one.name]) for one in own] + [
            inspect.Parameter(kind, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for kind, annotation, default in shared
        ]
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        app.command(name, cls=PlainCommand, rich_help_panel=panel)(run)
        return function

    return add
