"""Write the reference when the docs are built: commands, Python API, REST, settings, exceptions, all results.

None of these pages is stored: each is made of the code, or of docs/results, that it describes.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import tempfile
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src")]
import commands  # noqa: E402 - it lies beside this file, which is no package
import results  # noqa: E402

PACKAGES = [
    "setnet",
    *(f"setnet.{name}" for name in ("engine", "heads", "faces", "video", "library", "connect")),
    *(f"setnet.{name}" for name in ("collect", "train", "evaluate", "client", "web")),
]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages at the end of the navigation."""
    python = [{name: f"reference/{name}.md"} for name in PACKAGES]
    reference: list[Any] = [{title: path} for path, (title, _) in PAGES.items()]
    config.nav = [*(config.nav or []), {"Reference": [*reference, {"Python": python}]}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, which exist nowhere on disk."""
    for path, (_, write) in PAGES.items():
        files.append(File.generated(config, path, content=write()))
    for package in PACKAGES:
        files.append(File.generated(config, f"reference/{package}.md", content=api(package)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Show the results that a page links to."""
    shown: str = results.with_results(markdown)
    return shown


class Doctests(griffe.Extension):
    """Shows the examples of docstrings as code; without this Markdown takes ``>>>`` for quotations."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence each example, from its first ``>>>`` to the next empty line."""
        if obj.docstring:
            text = obj.docstring.value
            obj.docstring.value = re.sub(
                r"^>>> .*?(?=\n\n|\Z)", r"```python\n\g<0>\n```", text, flags=re.S | re.M
            )


def api(name: str) -> str:
    """Return the page of a package: its docstring, then every public name where it is defined."""
    package = importlib.import_module(name)
    public = sorted(set(package.__all__) - {"__version__"})
    parts = [f"# {name}", inspect.getdoc(package) or ""]
    constants = []
    for public_name in public:
        value = getattr(package, public_name)
        if inspect.ismodule(value):
            members = f"    options:\n      heading: {public_name}\n      members: [Settings, run, tables]"
            parts.append(f"::: {value.__name__}\n{members}")
            continue
        home, own_name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        if home.startswith("setnet.") and own_name:
            heading = f"    options:\n      heading: {public_name}"
            parts.append(f"::: {home}.{own_name}\n{heading}")
        else:
            constants.append(f"- `{public_name}`")
    return "\n\n".join([*parts, *(["## Constants and types", "\n".join(constants)] if constants else [])])


def command_line() -> str:
    """Return exit codes, environment variables, and what each command prints for `--help`."""
    pages: str = commands.help_pages()
    return pages


def rest() -> str:
    """Return all operations of the OpenAPI document, with an example of each body and answer."""
    from setnet.web import create_app

    with tempfile.TemporaryDirectory() as folder:
        document = create_app(Path(folder) / "library").openapi()
    parts = [
        "# REST API",
        "A running server has this as `/api/v1/openapi.json`, and as a page at `/docs`. In the "
        "answers every string, number and list stands for its type. An error has the type "
        "`application/problem+json` and says in `detail` what was wrong.",
    ]
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            parts += [f"## `{verb.upper()} {path}`", *_operation(operation, document)]
    return "\n\n".join(parts)


def _operation(operation: dict[str, Any], document: dict[str, Any]) -> list[str]:
    parts = [operation.get("description") or operation.get("summary", "")]
    if parameters := operation.get("parameters"):
        rows = [
            f"| `{given['name']}` | {given['in']} | {given.get('description', '')} |" for given in parameters
        ]
        parts.append("\n".join(["| parameter | in | meaning |", "|---|---|---|", *rows]))
    answer: dict[str, Any] = next(
        (found for code, found in operation["responses"].items() if code.startswith("2")), {}
    )
    for title, found in (("Body", operation.get("requestBody", {})), ("Answer", answer)):
        for kind, content in found.get("content", {}).items():
            if kind == "application/json" and content.get("schema"):
                example = content.get("example") or _example(content["schema"], document)
                text = json.dumps(example, indent=1)
                parts.append(f"{title}:\n\n```json\n{text}\n```")
            else:
                parts.append(f"{title}: `{kind}`")
    return parts


def _example(schema: dict[str, Any], document: dict[str, Any], inside: tuple[str, ...] = ()) -> Any:
    """Return a value that a schema allows; one level of what contains itself."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return None if name in inside else _example(
            document["components"]["schemas"][name], document, (*inside, name)
        )  # fmt: skip
    for known in ("example", "default", "const"):
        if schema.get(known) is not None:
            return schema[known]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return _example(schema[choice][0], document, inside)
    kind = schema.get("type")
    if kind == "array":
        if "prefixItems" in schema:
            return [_example(item, document, inside) for item in schema["prefixItems"]]
        return [_example(schema.get("items", {}), document, inside)]
    if kind == "object":
        known_fields = schema.get("properties", {})
        return {name: _example(inner, document, inside) for name, inner in known_fields.items()}
    return {"string": "string", "integer": 1, "number": 0.5, "boolean": True}.get(str(kind))


def settings() -> str:
    """Return the settings of indexing and of the server with their defaults."""
    from setnet.faces import FaceSettings
    from setnet.web import WebSettings

    parts = ["# Settings", "The [command line](cli.md) lists the environment variables and exit codes."]
    for title, kind in (("Finding and describing faces", FaceSettings), ("The server", WebSettings)):
        rows = [
            f"| `{field.name}` | {'' if field.default is MISSING else f'`{field.default!r}`'} |"
            for field in fields(kind)
        ]
        explained = f"::: {kind.__module__}.{kind.__qualname__}\n    options:\n      members: false"
        parts += [f"## {title}", "\n".join(["| setting | default |", "|---|---|", *rows]), explained]
    return "\n\n".join(parts)


def exceptions() -> str:
    """Return every exception there is, and what it means."""
    from setnet import errors

    kinds = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__
    ]
    rows = [f"| `{kind.__name__}` | {(inspect.getdoc(kind) or '').splitlines()[0]} |" for kind in kinds]
    about = "All errors that a caller can cause are a `SetNetError`; a command then ends with exit code 2."
    return "\n".join(["# Exceptions", "", about, "", "| exception | meaning |", "|---|---|", *rows])


def _all_results(title: str, benchmarks: bool) -> str:
    names = sorted(file.stem for file in results.FOLDER.glob("*.json"))
    pages = [results.page_of(name) for name in names]
    return "\n\n".join([f"# {title}", *(page for page in pages if ("benchmarks/" in page) == benchmarks)])


PAGES = {
    "reference/cli.md": ("Command line", command_line),
    "reference/rest.md": ("REST", rest),
    "reference/settings.md": ("Settings", settings),
    "reference/exceptions.md": ("Exceptions", exceptions),
    "reference/benchmarks.md": ("All benchmarks", lambda: _all_results("All benchmarks", True)),
    "reference/experiments.md": ("All experiments", lambda: _all_results("All experiments", False)),
}
