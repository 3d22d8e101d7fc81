"""The list of commands that use the network, compared with the commands and the sources there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setnet.cli.app import COMMANDS, command

REPOSITORY = Path(__file__).parents[2]
SOURCES = REPOSITORY / "src" / "setnet"

# Who has one of these talks to another machine, or listens.
PARAMETERS = {"host", "port", "uri"}
# What they are given decides: a model by name, photos by an address such as s3://bucket.
BY_ARGUMENT = {
    "setnet models add",
    *(f"setnet {name}" for name in ("index", "describe", "faces", "search", "people add")),
}

_LIBRARIES = (
    "httpx|urllib.request|http.client|psycopg|fsspec|uvicorn|distributed|socket|boto3|requests|aiohttp"
)
_IMPORT = re.compile(rf"^\s*(?:import|from) (?:{_LIBRARIES})\b", re.MULTILINE)
# Parts of the list's commands; `client` is Python's, and `sandbox` has processes of this machine.
KNOWN = ("addresses.py", "client.py", "faces/fetch.py", "connect/", "web/server.py", "sandbox/")


def every_command(found: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield a command and those in it, groups too: they have options of their own."""
    yield path, found
    for name, inner in getattr(found, "commands", {}).items():
        yield from every_command(inner, f"{path} {name}")


def listed() -> set[str]:
    """Return the commands in the first column of the list, without their options."""
    page = (REPOSITORY / "docs" / "privacy.md").read_text(encoding="utf-8")
    part = page.split("## What uses the network\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    return {text.split(" --")[0] for cell in cells for text in re.findall(r"`(setnet [^`]*)`", cell)}


def test_every_command_that_uses_the_network_is_listed() -> None:
    walked = {
        path
        for name in COMMANDS
        for path, found in every_command(command(name), f"setnet {name}")
        if PARAMETERS & {parameter.name for parameter in found.params}
    }
    assert listed() == walked | BY_ARGUMENT


def test_no_other_part_of_the_sources_can_reach_the_network() -> None:
    reaching = {
        file.relative_to(SOURCES).as_posix()
        for file in SOURCES.rglob("*.py")
        if _IMPORT.search(file.read_text(encoding="utf-8"))
    }
    assert reaching
    assert {path for path in reaching if not path.startswith(KNOWN)} == set()


def test_the_security_policy_points_to_the_one_list() -> None:
    policy = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")
    assert "docs/privacy.md#what-uses-the-network" in policy
