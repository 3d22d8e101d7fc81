"""The page's files: read once, joined and compressed once, at an address that changes with their content.

A document loads one script and one style sheet: those it names are joined with what they import, because on a
slow line each further file costs a round trip. They are at `/static/VERSION/...`, where the version is a hash
of all files. So a browser keeps them for good, and never runs two versions together.
"""

from __future__ import annotations

import gzip
import mimetypes
import posixpath
import re
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request, Response

STATIC = Path(__file__).parent / "static"
_FOREVER = "public, max-age=31536000, immutable"
_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_SCRIPT = re.compile(r'<script type="module" src="/static/([^"]+)"')
_STYLE = re.compile(r'  <link rel="stylesheet" href="/static/([^"]+)">\n')
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


class PageFile:
    """A file of the page as it is sent, plain or compressed."""

    def __init__(self, name: str, data: bytes) -> None:
        self._data = data
        suffix = posixpath.splitext(name)[1]
        self._type = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        self._tag = f'W/"{blake2b(data, digest_size=9).hexdigest()}"'

    @cached_property
    def _packed(self) -> bytes:
        return gzip.compress(self._data, mtime=0)

    def answer(self, request: Request, caching: str = "no-cache", status: int = 200) -> Response:
        """Return the file, unless the browser has it already."""
        headers = {"ETag": self._tag, "Cache-Control": caching, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self._tag and status == 200:
            return Response(None, 304, headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self._data, status, headers, self._type)
        return Response(self._packed, status, headers | {"Content-Encoding": "gzip"}, self._type)


class PageFiles:
    """All files below a folder, by their path in it."""

    def __init__(self, folder: Path) -> None:
        files = {
            p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
        }
        everything = blake2b(digest_size=6)
        for name, data in files.items():
            everything.update(f"{name} {len(data)} ".encode() + data)
        self.version = everything.hexdigest()
        self._sources = {
            name: data.decode() for name, data in files.items() if name.endswith((".js", ".css"))
        }
        self._files: dict[str, PageFile] = {}
        for name, data in files.items():
            if name.endswith(".html"):
                self._add(name, self._linked(name, data.decode()))
            elif name not in self._sources:
                self._add(name, data)

    def _add(self, name: str, data: bytes) -> None:
        self._files[name] = PageFile(name, data)

    def html(self, name: str, request: Request, status: int = 200) -> Response:
        """Return a document, which browsers ask for again each time."""
        return self._files[name].answer(request, status=status)

    def at(self, version: str, name: str, request: Request) -> Response:
        """Return what a document links to."""
        if version != self.version or name not in self._files:
            raise HTTPException(404, "this is no file of the page as it is now: load the page again")
        return self._files[name].answer(request, _FOREVER)

    def _linked(self, name: str, document: str) -> bytes:
        """Return a document with the version in its links, to its script and its one style sheet."""
        for script in _SCRIPT.findall(document):
            self._add(script, self._bundle(script).encode())
        styles = _STYLE.findall(document)
        if styles:
            joined = f"css/{posixpath.splitext(name)[0]}.css"
            self._add(joined, "".join(self._sources[style] for style in styles).encode())
            document = document.replace(styles[0], joined, 1)
            document = _STYLE.sub(lambda link: link[0] if link[1] == joined else "", document)
        return document.replace('"/static/', f'"/static/{self.version}/').encode()

    def _bundle(self, script: str) -> str:
        """Return a script after all that it imports; each module is a function that returns its exports."""
        names: dict[str, str] = {}
        parts: list[str] = []

        def read(module: str, importers: tuple[str, ...]) -> str:
            def link(found: re.Match[str]) -> str:
                imported = posixpath.normpath(posixpath.join(posixpath.dirname(module), found[2]))
                if imported in importers:
                    raise ValueError(f"{imported} and {module} import each other")
                if imported not in names:
                    body = read(imported, (*importers, imported))
                    exports = ", ".join(_EXPORT.findall(self._sources[imported]))
                    names[imported] = f"module{len(names)}"
                    parts.append(
                        f"const {names[imported]} = (() => {{\n{body}return {{ {exports} }};\n}})();\n"
                    )
                return f"const {{{found[1].replace(' as ', ': ')}}} = {names[imported]};"

            return _EXPORT.sub("", _IMPORT.sub(link, self._sources[module]))

        last = read(script, (script,))
        return "".join(parts) + last


@cache
def page_files() -> PageFiles:
    """Return the files that setnet came with."""
    return PageFiles(STATIC)


def add_pages(app: FastAPI, documents: dict[str, str]) -> None:
    """Serve HTML files at some addresses, and what they link to."""
    files = page_files()

    def add(path: str, name: str) -> None:
        async def document(request: Request) -> Response:
            return files.html(name, request)

        app.add_route(path, document, include_in_schema=False)

    for path, name in documents.items():
        add(path, name)

    async def static(request: Request) -> Response:
        return files.at(request.path_params["version"], request.path_params["name"], request)

    app.add_route("/static/{version}/{name:path}", static, include_in_schema=False)


def missing_page(request: Request) -> Response | None:
    """Return the page for an address where nothing is; None where a program asks and not a person."""
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        return None
    return page_files().html("missing.html", request, 404)
