"""Options that several commands share, groups of commands, and the question that one option stands for."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from setnet.cli.output import say
from setnet.errors import InvalidInputError, SetNetError, TakenError, near_names

_T = TypeVar("_T")


def option(about: str, *names: str, **more: Any) -> Any:
    """Return an option of a command: what it does, its names if they are not the parameter's, and limits."""
    return typer.Option(*names, help=about, **more)


def argument(metavar: str, about: str | None = None, **more: Any) -> Any:
    """Return an argument of a command, by the name that its help gives it."""
    return typer.Argument(metavar=metavar, help=about, show_default=False, **more)


def complete_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the saved names that begin as what was typed, for completion in a shell."""
    from setnet.library import Library, default_library

    try:
        with Library.open(ctx.params.get("library") or default_library()) as library:
            known = [name for person in library.people for name in (person.name, *person.aliases)]
    except (SetNetError, OSError):  # no library yet
        return []
    size = len(incomplete)  # what was typed stays, in small letters too
    found = [incomplete + name[size:] for name in known if name[:size].casefold() == incomplete.casefold()]
    # zsh and fish quote what they are given; bash takes it as it is.
    return [re.sub(r"([^\w.-])", r"\\\1", name) for name in found] if "COMP_WORDS" in os.environ else found


LibraryOption = Annotated[
    Path | None,
    option("The library [default: SETNET_LIBRARY, else one in the user's data folder].", metavar="DIR"),
]
JsonOption = Annotated[bool, option("Print JSON for programs.", "--json")]
LimitOption = Annotated[int, option("How many to show at most.", "-n", "--limit", min=1, metavar="N")]
WorkersOption = Annotated[
    int | None, option("Worker processes [default: one per core].", min=0, max=256, metavar="N")
]
YesOption = Annotated[bool, option("Do not ask; needed where there is no terminal.", "--yes")]
ForGoodOption = Annotated[bool, option("Delete without undo and without a trace.", "--for-good")]
DryRunOption = Annotated[
    bool, option("Only say what would be done; nothing is written or changed.", "--dry-run")
]
SheetOption = Annotated[
    Path | None, option("Also write a contact sheet, a page for the browser.", metavar="FILE.html")
]
PortOption = Annotated[int, option("Port to listen on; 0 takes a free one.", min=0, max=65535, metavar="N")]
OpenOption = Annotated[bool, option("Open the page in the browser.", "--open")]

DetectorOption = Annotated[
    str | None,
    option("mtcnn, cascade or yunet (misses more) [default: the library's, else mtcnn].", metavar="MODEL"),
]
DescriptorOption = Annotated[
    str | None,
    option("A model of `setnet models` [default: the library's, else sface].", metavar="MODEL"),
]
MinFaceOption = Annotated[
    int | None,
    option("Smallest face to find, in pixels [default: the library's, else 40].", min=1, metavar="PIXELS"),
]

NameArgument = Annotated[str, argument("NAME", autocompletion=complete_names)]
FacesArgument = Annotated[
    list[str], argument("PHOTO#N", "A face of an indexed photo: group.jpg#3 is the third from the left.")
]
NumbersArgument = Annotated[list[int], argument("N", "Numbers of examples, as `people show` has them.")]
ToExistingOption = Annotated[
    bool, option("Add to whoever is called so, spelt differently or looking different.", "--to-existing")
]
WithoutDescriptorsOption = Annotated[
    bool, option("Without them: import finds the faces again in the photos.", "--without-descriptors")
]

AllOption = Annotated[bool, option("Only photos with all of them.", "--all")]
AtLeastOption = Annotated[int, option("Only photos with at least this many of them.", min=0, metavar="N")]
OnlyOption = Annotated[bool, option("Only photos with nobody else in them.", "--only")]
WithoutOption = Annotated[
    list[str] | None,
    option(
        "Only photos without this person; may be repeated.", metavar="PERSON", autocompletion=complete_names
    ),
]
AfterOption = Annotated[
    str | None, option("Taken on this date or later: 2019, 2019-07, 2019-07-14.", metavar="DATE")
]
BeforeOption = Annotated[str | None, option("Taken before this date.", metavar="DATE")]


class _Conversion:
    """Converts what a parameter was given.

    Texts, paths and defaults need no pydantic, which Typer imports for others: a fifth of the time of a
    search.
    """

    def __init__(self, parameter: Any) -> None:
        self._kind, self._default = parameter.type_descriptor.annotation, parameter.default
        self._converter = parameter.get_runtime_param

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value as the command takes it."""
        if self._kind in (str, Path) and isinstance(value, str):
            return self._kind(value)
        if self._kind in (list[str], list[Path]):
            (kind,) = get_args(self._kind)
            return [kind(each) for each in value or ()]
        if value is None or value is self._default:
            return value
        return self._converter().coerce(value, param=param, ctx=ctx)


_KINDS = {"<int>": "N", "<int range>": "N", "<float>": "NUMBER", "<str>": "TEXT", "<path>": "PATH"}


def _name_kind(parameter: Any, ctx: Any) -> str | None:
    """Return what the help calls the value of a parameter, which is no type of Python."""
    kind = type(parameter).display_type_rich(parameter, ctx)
    return "" if isinstance(parameter, TyperArgument) else _KINDS.get(kind, kind)


def _for_people(parameters: Iterable[Any]) -> list[Any]:
    """Return parameters that convert by `_Conversion`, where Typer has the place for it (0.29)."""
    found = list(parameters)
    for parameter in found:
        parameter.display_type_rich = partial(_name_kind, parameter)
        if hasattr(parameter, "get_runtime_param") and "get_runtime_param" not in vars(parameter):
            conversion = _Conversion(parameter)
            parameter.get_runtime_param = lambda conversion=conversion: conversion
    return found


class PlainCommand(TyperCommand):
    """A command whose help names no types of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return _for_people(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A group that shows its help when it is called alone, and answers a wrong name with the nearest one."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters."""
        return _for_people(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; without any, print the help."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under the titles of their panels, each with its whole first sentence."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            found: Any = self.get_command(ctx, name)
            title = getattr(found, "rich_help_panel", None)
            about = found.get_short_help_str(limit=1000)
            panels.setdefault(title if isinstance(title, str) else "Commands", []).append((name, about))
        self.write_panels(panels, formatter)

    def write_panels(self, panels: Mapping[str, Iterable[tuple[str, str]]], formatter: Any) -> None:
        """Write panels of commands, their descriptions in one column."""
        width = max(len(name) for panel in panels.values() for name, _ in panel)
        for title, panel in panels.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), about) for name, about in panel])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first argument names."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            near = near_names(name, known)
            hint = (
                f"Did you mean {' or '.join(map(repr, near))}?"
                if near
                else f"`{ctx.command_path} --help` lists them."
            )
            ctx.fail(f"no command {name!r}. {hint}")
        return super().resolve_command(ctx, args)


HELP_NAMES = {"help_option_names": ["-h", "--help"]}


def make_app(cls: type[CommandGroup] = CommandGroup, **more: Any) -> typer.Typer:
    """Return an app with plain help: it shows in the time that styled help takes to be imported."""
    return typer.Typer(
        cls=cls,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings=HELP_NAMES,
        **more,
    )


def require_yes(question: str, otherwise: str, yes: bool) -> None:
    """Ask whether to go on, unless the user gave --yes; end on a no, and where nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInputError(f"{otherwise}: without a terminal to ask, --yes says that you mean it")
    if not typer.confirm(question, err=True):
        say(otherwise)
        raise typer.Exit(1)


def save_person(save: Callable[[str], _T], is_given: bool, flag: str = "--to-existing") -> _T:
    """Call `save` with what to do if the name is a saved person's: `add` to them if a flag says so.

    Without the flag a terminal asks, and ends on a no; a program gets an error that names the flag.
    """
    try:
        return save("add" if is_given else "ask")
    except TakenError as error:
        question = str(error).rpartition(": ")[0]
        if not sys.stdin.isatty():
            raise InvalidInputError(f"{question}: {flag} does it all the same") from error
        require_yes(f"{question}. Go on all the same?", "nothing was changed", yes=False)
    return save("add")


def drop_unset(**given: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in given.items() if value is not None}


def settings_command(settings: type, act: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose options are the fields of a settings dataclass, and whose help is its docstring.

    `act` gets the settings; what else it takes, by Typer's annotations, are further options of the command.
    A field's type and default are the option's; its metadata has `help`, `names` if they are not the field's,
    `metavar`, `minimum` and `is_argument`.
    """
    kinds = get_type_hints(settings)
    own = [_parameter(each, kinds[each.name]) for each in fields(settings)]
    more = [*inspect.signature(act, eval_str=True).parameters.values()][1:]

    def command(**given: Any) -> None:
        chosen = {each.name: given.pop(each.name) for each in own}
        # Typer has no value for a list that is not given.
        act(settings(**{name: value for name, value in chosen.items() if value is not None}), **given)

    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *more)]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = inspect.getdoc(settings)
    vars(command)["__signature__"] = inspect.Signature(parameters)
    return command


def _parameter(each: Field[Any], kind: Any) -> inspect.Parameter:
    about, default = each.metadata, inspect.Parameter.empty if each.default is MISSING else each.default
    if get_origin(kind) is Sequence:
        kind = list.__class_getitem__(get_args(kind))
        if default == ():
            kind, default = kind | None, None
    more = {
        "help": about["help"],
        "metavar": about["metavar"],
        "min": about["minimum"],
        "show_default": default is not None and default is not inspect.Parameter.empty,
    }
    shown = typer.Argument(**more) if about["is_argument"] else typer.Option(*about["names"], **more)
    return inspect.Parameter(
        each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, shown]
    )


def check_left_out(reason: str, **given: object) -> None:
    """Raise for options that have no meaning beside another one."""
    for name, value in given.items():
        if value:
            option = name if name.isupper() else f"--{name.replace('_', '-')}"
            raise InvalidInputError(f"{reason}: leave out {option}")
