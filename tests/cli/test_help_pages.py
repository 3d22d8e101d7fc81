from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from setnet.cli.app import COMMANDS
from setnet.cli.help_pages import help_pages

REPOSITORY = Path(__file__).parents[2]


def test_the_help_pages_in_the_docs_are_up_to_date() -> None:
    stored = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    assert stored == help_pages(), "run: python -m setnet.cli.help_pages docs/cli.md"


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


@pytest.mark.parametrize(
    "arguments", [("--help",), ("search", "--help"), ("index", "--help"), ("--version",)]
)
def test_help_imports_no_heavy_library(arguments: tuple[str, ...]) -> None:
    assert not imported_by(*arguments) & {"numpy", "rich", "scipy", "cv2", "onnxruntime", "PIL", "torch"}


def test_a_search_by_names_loads_no_model_library(tmp_path: Path) -> None:
    import numpy as np

    from setnet.library import Example, Library

    with Library.create(tmp_path / "library") as library:
        library.people.add("Ann", [Example(np.eye(128, dtype=np.float32)[0])])
    loaded = imported_by("search", "ann", "--library", str(tmp_path / "library"))
    assert not loaded & {"scipy", "cv2", "onnxruntime", "PIL", "torch"}


def test_every_command_has_a_file_and_help() -> None:
    for name in COMMANDS:
        assert COMMANDS[name].endswith(".")
    assert f"## `setnet {next(iter(COMMANDS))}`" in help_pages()
