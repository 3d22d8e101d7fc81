"""`setnet serve`: open the library as a web page and REST API."""

from __future__ import annotations

from typing import Annotated

import typer

from setnet.cli.options import LibraryOption, make_app
from setnet.cli.output import say

app = make_app()


@app.command()
def serve(
    library: LibraryOption = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but a loopback address needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8422,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Let pages of this origin call the API; may be repeated."),
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="Believe the X-Forwarded headers of a proxy in front; needs a token."
        ),
    ] = False,
) -> None:
    """Open the library as a web page and REST API; nothing leaves this machine.

    With --host other than loopback, clients must show a token: SETNET_TOKEN, or one that is printed.
    """
    from setnet.web import serve as run

    run(
        library,
        host=host,
        port=port,
        open_page=open_page,
        cors=tuple(cors or ()),
        behind_proxy=behind_proxy,
        say=say,
    )
