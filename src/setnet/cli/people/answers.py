"""What the commands about people share: how a person is named, and how one is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from setnet.cli.output import print_either

if TYPE_CHECKING:
    from setnet.library import Person

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
Numbers = Annotated[
    list[int],
    typer.Argument(metavar="N", help="Numbers of examples, as `people show` has them.", show_default=False),
]


def print_person(person: Person, json: bool, text: str = "", **more: object) -> None:
    """Print a person as JSON, with what is given beside, or in a line."""
    print_either(person.to_dict() | more, text or f"{person.name}: {person.examples} example face(s)", json)
