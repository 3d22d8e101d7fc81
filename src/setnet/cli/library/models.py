"""`setnet models`: list the models and check their hashes."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Annotated

import typer

from setnet.cli.output import print_json, print_table, say
from setnet.cli.shared_options import JsonOption, make_app

app = make_app()


@app.command()
def models(
    download: Annotated[
        str | None, typer.Option(metavar="NAME", help="Fetch a model that is known by its address.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the models: dimension, licence, where they were found, whether the hash is right.

    The exit status is 1 when a model is damaged.
    """
    from setnet.faces import download_model
    from setnet.faces import models as known_models

    if download is not None:
        download_model(download, tell=say)
    known = known_models()
    if json:
        print_json({"models": [asdict(model) for model in known]})
    else:
        print_table(
            ["name", "kind", "dim", "licence", "hash", "where"],
            [
                (
                    m.name,
                    m.kind,
                    m.dim or "",
                    m.licence,
                    {True: "right", False: "WRONG", None: "-" if m.found else "not here"}[m.hash_ok],
                    _folder(m.where),
                )
                for m in known
            ],
            right=["dim"],
        )
        for model in known:
            if model.problem is not None:
                say(f"{model.name}: {model.problem}")
    if any(model.hash_ok is False for model in known):
        raise typer.Exit(1)


def _folder(where: str) -> str:
    """Return one place for a model of several files."""
    files = where.split(", ")
    return os.path.commonpath(files) if len(files) > 1 and all(map(os.path.isabs, files)) else where
