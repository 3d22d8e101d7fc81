"""`setnet immich`: several people at once in the photos of an Immich server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.options import (
    AfterOption,
    AllOption,
    AtLeastOption,
    BeforeOption,
    HitsOption,
    JsonOption,
    OnlyOption,
    WithoutOption,
    argument,
    make_app,
    option,
)
from setnet.cli.output import ProgressBar, print_either, print_rows, say
from setnet.wording import pluralise

app = make_app()

FolderOption = Annotated[Path, option("The folder of the faces fetched.", "--library", metavar="DIR")]


@app.callback()
def immich() -> None:
    """Search an Immich server's photos by several of its people at once (extra `postgres`).

    Its database is read with a role that may only SELECT, and never written; no face model is needed.
    """


@app.command()
def sync(
    uri: Annotated[
        str, argument("URI", "postgresql://USER@HOST/immich; keep the password in PGPASSWORD or ~/.pgpass.")
    ],
    library: FolderOption,
    json: JsonOption = False,
) -> None:
    """Fetch the faces that are new or changed since the last time, and drop those that are gone.

    Photos in the trash, in the archive or in the locked folder are left out.
    """
    from setnet.connect import ImmichIndex

    with ProgressBar(silent=json) as bar:
        done = ImmichIndex.sync(library, uri, lambda done, photos: bar.show("fetching photos", done, photos))
    if done.skipped:
        say(
            f"note: {pluralise(done.skipped, 'photo has', 'photos have')} a face without a usable descriptor "
            "(left out)"
        )
    text = (
        f"{done.photos:,} photos with faces, {done.people:,} people: {done.added:,} added, {done.changed:,} "
        f"changed, {done.renamed:,} renamed, {done.removed:,} removed"
    )
    print_either(done.to_dict(), text, json)


@app.command()
def search(
    people: Annotated[list[str], argument("PERSON", "A name given in Immich, or a person's id.")],
    library: FolderOption,
    k: HitsOption = 20,
    all_people: AllOption = False,
    at_least: AtLeastOption = 1,
    only: OnlyOption = False,
    without: WithoutOption = None,
    after: AfterOption = None,
    before: BeforeOption = None,
    link_base: Annotated[
        str, option("Address of Immich's page, for links to the photos.", metavar="URL")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Find the photos that contain these people: all of them first, then all but one, and so on.

    A name with a question mark is a guess: Immich gave that face to nobody, but it is alike. The exit status
    is 1 when no photo fits.
    """
    from setnet.connect import ImmichIndex
    from setnet.library import Conditions

    with ImmichIndex(library) as index:
        hits = index.search(
            people,
            k,
            at_least=len(people) if all_people else at_least,
            only=only,
            without=without or (),
            conditions=Conditions.parse(after, before),
            link_base=link_base,
        )
    rows = [
        (n, f"{hit.score:.3f}", ", ".join(hit.people), hit.file, hit.link) for n, hit in enumerate(hits, 1)
    ]
    facts, columns = {"hits": [hit.to_dict() for hit in hits]}, ["", "score", "who", "file", "link"]
    print_rows(facts, json, columns, rows, "no photo fits", right=["", "score"])
    if not hits:
        raise typer.Exit(1)


@app.command()
def people(
    library: FolderOption,
    everybody: Annotated[
        bool, option("Also people without a name, and those hidden in Immich.", "--all")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List Immich's people, those in most photos first."""
    from setnet.connect import ImmichIndex

    with ImmichIndex(library) as index:
        known = [p for p in index.people if everybody or (p.names and not p.hidden)]
    facts, rows = {"people": [p.to_dict() for p in known]}, [(p.name, p.photos, p.id) for p in known]
    empty = "Immich has named nobody yet: `setnet immich people --all` lists them by id"
    print_rows(facts, json, ["name", "photos", "id"], rows, empty, right=["photos"])
