"""What the experiments of `setnet evaluate` have in common: their options, written once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from setnet.evaluate import Halves, Methods, Source

__all__ = [
    "Json",
    "PeopleOptions",
    "Plots",
    "Repeats",
    "Seed",
    "TradeoffOptions",
    "WorldOptions",
    "with_options",
]

Json = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", help="Keep rows here as they finish; the same command goes on from them."
    ),
]
Plots = Annotated[Path | None, typer.Option(metavar="DIR", help="Draw plots here, PNG and SVG.")]
Seed = Annotated[int, typer.Option(min=0, help="Everything random follows from it.")]
Repeats = Annotated[int, typer.Option(min=1, help="With other query faces each time.")]


@dataclass(frozen=True)
class PeopleOptions:
    """Whose faces, which methods, how often."""

    descriptors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz", help="Descriptor file, as `setnet describe` writes it.", show_default=False
        ),
    ] = None
    people: Annotated[
        Path | None,
        typer.Option(
            metavar="PEOPLE.npz",
            help="Virtual people, as `setnet evaluate fit` writes them [default: like LFW's].",
            show_default=False,
        ),
    ] = None
    json: Json = None
    plots: Plots = None
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only these; repeatable [default: all].", show_default=False),
    ] = None
    head: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A head's .safetensors, or a run's network.safetensors, to add; repeatable.",
            show_default=False,
        ),
    ] = None
    repeats: Repeats = 10
    seed: Seed = 0
    difficulty: Annotated[
        float,
        typer.Option(help="Spread of each virtual person's faces: 1 as on LFW, 1.7 as hard as the paper's."),
    ] = 1.7

    def source(self) -> Source:
        """Return where people come from."""
        from setnet.evaluate import Source

        return Source(self.descriptors, difficulty=self.difficulty, people=self.people, seed=self.seed)

    def settings(self) -> dict[str, object]:
        """Return what every number depends on besides its source: a head made anew is another head."""
        from setnet.evaluate import fingerprinted

        files = [name for name in self.head or () if name.endswith(".safetensors")]
        heads = {"heads": [fingerprinted(Path(name)) for name in files]} if files else {}
        return {"repeats": self.repeats, **heads}

    def methods(self, halves: Halves, fitting_sets: int = 6000) -> Methods:
        """Return the methods, fitted on one half."""
        from setnet.evaluate import Methods

        return Methods(halves.train, self.seed, tuple(self.head or ()), fitting_sets)


@dataclass(frozen=True)
class WorldOptions(PeopleOptions):
    """The same, and which items, and how many queries."""

    world: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="simulated, composed (of the descriptors) or press (LFW) [default: by --descriptors].",
            show_default=False,
        ),
    ] = None
    scale: Annotated[
        float, typer.Option(help="Size of the simulated world; 1 is the paper's 549,000 items.")
    ] = 1.0
    items: Annotated[int, typer.Option(min=100, help="Items of a composed world.")] = 50_000
    lists: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="LFW's multi_person_photos.json, for --world press."),
    ] = None
    queries: Annotated[int, typer.Option(min=2, help="Half of two people, half of three.")] = 1000

    def source(self) -> Source:
        """Return where people and items come from."""
        from setnet.evaluate import Source

        return Source(
            self.descriptors,
            self.world,
            self.scale,
            self.items,
            self.difficulty,
            self.lists,
            self.people,
            self.seed,
        )


@dataclass(frozen=True)
class TradeoffOptions(WorldOptions):
    """The same with the trade-off's own defaults: it times every row."""

    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Set vectors to try; repeatable [default: one head].", show_default=False
        ),
    ] = None
    repeats: Repeats = 2


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, for its first parameter, an option per field of that parameter's class."""
    first, *own = signature(command, eval_str=True).parameters.values()
    kind: type[Any] = first.annotation
    hints = get_type_hints(kind, include_extras=True)
    shared = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields(kind)
    ]

    @wraps(command)
    def flat(**values: Any) -> None:
        options = kind(**{parameter.name: values.pop(parameter.name) for parameter in shared})
        command(options, **values)

    own = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own]
    flat.__signature__ = signature(command).replace(parameters=[*shared, *own])  # type: ignore[attr-defined]
    return flat
