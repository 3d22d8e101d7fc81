"""The demo's album as a web page, with its people saved so that a click is enough to search."""

from __future__ import annotations

from pathlib import Path

__all__ = ["serve_album"]


def serve_album(library: Path, portraits: dict[str, Path], port: int) -> None:
    """Save the ten people by their portraits and open the page; returns when the server was stopped."""
    from setnet.cli.library.serve import web_server
    from setnet.library import Library

    run = web_server()
    with Library.open(library) as opened:
        for name, portrait in portraits.items():
            if name not in opened.people:
                opened.add_person(name, [str(portrait)])
    run(library, port=port, open_page=True)
