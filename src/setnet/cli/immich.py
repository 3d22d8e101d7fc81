"""`setnet immich`: several people at once in the photos of an Immich server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from setnet.cli.command import Call, Result, Rows, command
from setnet.cli.options import (
    AfterOption,
    AllOption,
    AtLeastOption,
    BeforeOption,
    LimitOption,
    OnlyOption,
    WithoutOption,
    argument,
    make_app,
    option,
)
from setnet.cli.output import say
from setnet.wording import pluralise

app = make_app()

FolderOption = Annotated[
    Path | None,
    option(
        "The folder of the faces fetched [default: `immich` beside your library].", "--faces", metavar="DIR"
    ),
]


@app.callback()
def immich() -> None:
    """Search an Immich server's photos by several of its people at once (extra `postgres`).

    Its database is read with a role that may only SELECT, and never written; no face model is needed.
    """


def _place(call: Call, chosen: Path | None) -> Path:
    return chosen or call.place.parent / "immich"


@command(app, library=False)
def sync(
    call: Call,
    uri: Annotated[
        str, argument("URI", "postgresql://USER@HOST/immich; keep the password in PGPASSWORD or ~/.pgpass.")
    ],
    folder: FolderOption = None,
) -> Result:
    """Fetch the faces that are new or changed since the last time, and drop those that are gone.

    Photos in the trash, in the archive or in the locked folder are left out.
    """
    from setnet.connect import ImmichIndex

    done = ImmichIndex.sync(
        _place(call, folder), uri, lambda done, photos: call.bar.show("fetching photos", done, photos)
    )
    if done.skipped:
        photos = pluralise(done.skipped, "photo has", "photos have")
        say(f"note: {photos} a face without a usable descriptor (left out)")
    text = (
        f"{done.photos:,} photos with faces, {done.people:,} people: {done.added:,} added, {done.changed:,} "
        f"changed, {done.renamed:,} renamed, {done.removed:,} removed"
    )
    return Result(done, text)


@command(app, library=False)
def search(
    call: Call,
    people: Annotated[list[str], argument("PERSON", "A name given in Immich, or a person's id.")],
    folder: FolderOption = None,
    limit: LimitOption = 20,
    all_people: AllOption = False,
    at_least: AtLeastOption = 1,
    only: OnlyOption = False,
    without: WithoutOption = None,
    after: AfterOption = None,
    before: BeforeOption = None,
    owner: Annotated[
        str, option("Only photos of this user of Immich, by id [default: of all].", metavar="ID")
    ] = "",
    link_base: Annotated[
        str, option("Address of Immich's page, for links to the photos.", metavar="URL")
    ] = "",
) -> Result:
    """Find the photos that contain these people: all of them first, then all but one, and so on.

    A name with a question mark is a guess: Immich gave that face to nobody, but it is alike. The exit status
    is 1 when no photo fits.
    """
    from setnet.connect import ImmichIndex
    from setnet.library import Conditions

    with ImmichIndex(_place(call, folder)) as index:
        hits = index.search(
            people,
            limit,
            at_least=len(people) if all_people else at_least,
            only=only,
            without=without or (),
            conditions=Conditions.parse(after, before),
            owner=owner,
            link_base=link_base,
        )
    rows = [
        (n, f"{hit.score:.3f}", ", ".join(hit.people), hit.file, hit.link) for n, hit in enumerate(hits, 1)
    ]
    table = Rows(["", "score", "who", "file", "link"], rows, "no photo fits", ["", "score"])
    return Result({"hits": hits}, table, status=not hits)


@command(app, library=False)
def people(
    call: Call,
    folder: FolderOption = None,
    everybody: Annotated[
        bool, option("Also people without a name, and those hidden in Immich.", "--all")
    ] = False,
) -> Result:
    """List Immich's people, those in most photos first."""
    from setnet.connect import ImmichIndex

    with ImmichIndex(_place(call, folder)) as index:
        known = [person for person in index.people if everybody or (person.names and not person.hidden)]
    rows = [(person.name, person.photos, person.id) for person in known]
    empty = "Immich has named nobody yet: `setnet immich people --all` lists them by id"
    return Result({"people": known}, Rows(["name", "photos", "id"], rows, empty, ["photos"]))
