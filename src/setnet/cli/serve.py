"""`setnet serve`: open the library as a web page and REST API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from setnet.cli.command import Call, command
from setnet.cli.options import OpenOption, PortOption, make_app, option
from setnet.cli.output import say

app = make_app()


@command(app, json=False)
def serve(
    call: Call,
    host: Annotated[
        str, option("Address to listen on; any but a loopback address needs a token.")
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
) -> None:
    """Open the library as a web page and REST API; nothing leaves this machine.

    With --host other than loopback, clients must show a token: SETNET_TOKEN, or one that is printed.
    """
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
