"""What the commands about people share: how a person is named, and how one is printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_either, say
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.errors import TakenError
    from setnet.library import Person

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
ToExisting = Annotated[
    bool,
    typer.Option(
        "--to-existing", help="Add to whoever is called so, spelt differently or looking different."
    ),
]
Numbers = Annotated[
    list[int],
    typer.Argument(metavar="N", help="Numbers of examples, as `people show` has them.", show_default=False),
]


def agrees(error: TakenError) -> bool:
    """Return whether the user, asked at a terminal, means the person whose name is taken; ends on a no."""
    if not sys.stdin.isatty():
        return False
    question = str(error).rpartition(": ")[0]
    if not typer.confirm(f"{question}. Add to {error.person['name']}?", err=True):
        say("nothing was saved")
        raise typer.Exit(1)
    return True


def print_person(person: Person, json: bool, text: str = "", **more: object) -> None:
    """Print a person as JSON, with what is given beside, or in a line."""
    print_either(
        person.to_dict() | more, text or f"{person.name}: {counted(person.examples, 'example face')}", json
    )
