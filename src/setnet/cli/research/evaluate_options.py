"""Options that several experiments of `setnet evaluate` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Descriptors = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.npz", help="Descriptor file, as `setnet describe` writes it.", show_default=False
    ),
]
People = Annotated[
    Path | None,
    typer.Option(
        metavar="PEOPLE.npz",
        help="Virtual people, as `setnet evaluate fit` writes them [default: like LFW's].",
        show_default=False,
    ),
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", help="Keep rows here as they finish; the same command goes on from them."
    ),
]
Plots = Annotated[Path | None, typer.Option(metavar="DIR", help="Draw plots here, PNG and SVG.")]
MethodNames = Annotated[
    list[str] | None,
    typer.Option(
        "--method", metavar="NAME", help="Only these; repeatable [default: all].", show_default=False
    ),
]
Heads = Annotated[
    list[str] | None,
    typer.Option(
        "--head",
        metavar="FILE",
        help="A head's .safetensors, or a run's network.safetensors, to add; repeatable.",
        show_default=False,
    ),
]
Repeats = Annotated[int, typer.Option(min=1, help="With other query faces each time.")]
Seed = Annotated[int, typer.Option(min=0, help="Everything random follows from it.")]
Difficulty = Annotated[
    float,
    typer.Option(help="Spread of each virtual person's faces: 1 as on LFW, 1.7 as hard as the paper's."),
]
World = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="simulated, composed (of the descriptors), press (LFW), or a folder of `setnet collect` "
        "[default: by --descriptors].",
        show_default=False,
    ),
]
Scale = Annotated[float, typer.Option(help="Size of the simulated world; 1 is the paper's 549,000 items.")]
Items = Annotated[int, typer.Option(min=100, help="Items of a composed world.")]
Lists = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="LFW's multi_person_photos.json, for --world press.")
]
Queries = Annotated[int, typer.Option(min=2, help="Half of two people, half of three.")]
