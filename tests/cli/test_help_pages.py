from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from setnet.cli.app import COMMANDS, command
from setnet.cli.help_pages import help_pages

REPOSITORY = Path(__file__).parents[2]
HEAVY = {"scipy", "cv2", "onnxruntime", "PIL", "torch", "fastapi"}


def imported_by(*arguments: str) -> set[str]:
    """Return the top-level modules that a command loads."""
    script = (
        "import sys\n"
        f"sys.argv = ['setnet', *{list(arguments)!r}]\n"
        "from setnet.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize("arguments", [("--help",), *((name, "--help") for name in COMMANDS), ("--version",)])
def test_help_imports_no_heavy_library(arguments: tuple[str, ...]) -> None:
    assert not imported_by(*arguments) & {"numpy", "rich", *HEAVY}


def test_a_search_by_names_loads_no_model_library(tmp_path: Path) -> None:
    import numpy as np

    from setnet.library import Example, Library

    with Library.create(tmp_path / "library") as library:
        library.people.add("Ann", [Example(np.eye(128, dtype=np.float32)[0])])
    loaded = imported_by("search", "ann", "--library", str(tmp_path / "library"))
    assert not loaded & HEAVY


def leaves(found: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield a command, or each command of a group, with what a user types to call it."""
    inner = getattr(found, "commands", None)
    if inner is None:
        yield path, found
    for name, sub in (inner or {}).items():
        yield from leaves(sub, f"{path} {name}")


ALL = [leaf for name in COMMANDS for leaf in leaves(command(name), f"setnet {name}")]


@pytest.mark.parametrize(("path", "found"), ALL, ids=[path for path, _ in ALL])
def test_every_command_and_option_is_documented(path: str, found: Any) -> None:
    assert len(found.help.split()) > 2
    undocumented = [p.opts for p in found.params if p.param_type_name == "option" and not p.help]
    assert undocumented == []


def commands_in(text: str) -> set[str]:
    return set(re.findall(r"`setnet ([a-z][^`|{}…]*)`", text))


MENTIONED = sorted(
    commands_in(help_pages()).union(
        *(commands_in(file.read_text(encoding="utf-8")) for file in REPOSITORY.glob("docs/**/*.md")),
        *(commands_in(file.read_text(encoding="utf-8")) for file in REPOSITORY.glob("src/setnet/**/*.py")),
    )
)


@pytest.mark.parametrize("mentioned", MENTIONED)
def test_commands_named_in_help_docs_and_messages_can_be_called(mentioned: str) -> None:
    name, *words = shlex.split(mentioned)
    found = command(name)
    assert found is not None
    while words and words[0] in getattr(found, "commands", {}):
        found = found.commands[words.pop(0)]
    callable_ = [found, *(leaf for _, leaf in leaves(found, name))]  # a group may have options of its own
    options = {option for one in callable_ for p in one.params for option in p.opts}
    assert {word for word in words if word.startswith("-")} <= options
