"""`setnet serve`: open the library as a web page and REST API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from setnet.cli.command import Call, command
from setnet.cli.options import OpenOption, PortOption, make_app, option
from setnet.cli.output import say
from setnet.errors import InvalidInputError

app = make_app()


@command(app, json=False)
def serve(
    call: Call,
    host: Annotated[
        str, option("Address to listen on; any but a loopback address needs a token.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: PortOption = 8422,
    open_page: OpenOption = False,
    uploads: Annotated[
        Path | None, option("Keep photos that programs send in this folder.", metavar="FOLDER")
    ] = None,
    cors: Annotated[
        list[str] | None, option("Let pages of this origin call the API; may be repeated.", metavar="ORIGIN")
    ] = None,
    behind_proxy: Annotated[
        bool, option("Believe the X-Forwarded headers of a proxy in front; needs a token.", "--behind-proxy")
    ] = False,
    collection: Annotated[
        str | None,
        option("Answer searches in a collection, for `setnet search --searchers`.", metavar="COLLECTION"),
    ] = None,
    part: Annotated[
        str | None, option("With --collection: the i-th of n parts of it, such as 2/8.", metavar="I/N")
    ] = None,
) -> None:
    """Open the library as a web page and REST API; nothing leaves this machine.

    With --host other than loopback, clients must show a token: SETNET_TOKEN, or one that is printed.
    """
    if collection is not None:
        from setnet.engine.manifest import parse_part
        from setnet.web import serve_collection

        if open_page or cors or call.chosen:
            raise InvalidInputError("a searcher has no page: leave out --open, --cors and --library")
        serve_collection(
            collection, parse_part(part or "1/1"), host=host, port=port, behind_proxy=behind_proxy, say=say
        )
        return
    if part is not None:
        raise InvalidInputError("--part is that of a collection: name it with --collection")
    from setnet.web import serve as run

    run(
        call.chosen,
        host=host,
        port=port,
        open_page=open_page,
        cors=tuple(cors or ()),
        behind_proxy=behind_proxy,
        uploads=uploads,
        say=say,
    )
