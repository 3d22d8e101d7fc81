"""Serve the demo's album as a web page, with its people saved so that a click is enough to search."""

from __future__ import annotations

from pathlib import Path

__all__ = ["serve_album"]


def serve_album(library: Path, portraits: dict[str, Path], port: int) -> None:
    """Save the ten people by their portraits and serve the page until the server is stopped."""
    from setnet.cli.output import say
    from setnet.library import Library
    from setnet.web import serve

    with Library.open(library) as opened:
        for name, portrait in portraits.items():
            if name not in opened.people:
                opened.add_person(name, [str(portrait)])
    serve(library, port=port, open_page=True, say=say)
