from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from docs.hooks.commands import ENVIRONMENT, EXIT_CODES, help_pages
from setnet.cli.app import COMMANDS, command
from tests.support.command_line import called, setnet

REPOSITORY = Path(__file__).parents[2]
HEAVY = {"scipy", "cv2", "onnxruntime", "PIL", "torch", "fastapi"}
# What finds faces, draws sheets or compares photos.
NOT_FOR_A_SEARCH = {
    *(
        f"setnet.faces.{name}"
        for name in ("cascade", "fetch", "mtcnn", "pipeline", "sessions", "user_models", "yunet")
    ),
    *(f"setnet.library.{name}" for name in ("clustering", "duplicates", "grouping", "index_run", "sheets")),
    *(f"setnet.{name}" for name in ("collect", "connect", "evaluate", "train", "video", "web")),
    *(f"setnet.library.{name}" for name in ("backup", "examples", "groups", "people", "photo_reader")),
    *("pydantic", "ssl", "http.client", "multiprocessing"),
}


IMPORTS = """
import contextlib, io, sys
from setnet.cli import main
for arguments in {calls!r}:
    sys.argv = ["setnet", *arguments]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
    print(" ".join(arguments), *sorted(set(sys.modules) & {names!r}), sep="\\t")
"""


def imported_by(calls: list[list[str]], names: set[str]) -> dict[str, set[str]]:
    """Return which of some modules a process has loaded after each of several calls."""
    script = IMPORTS.format(calls=calls, names=names)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = (line.split("\t") for line in done.stdout.splitlines())
    return {call: set(modules) for call, *modules in lines}


def test_help_imports_no_heavy_library() -> None:
    calls = [[], ["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)]
    loaded = imported_by(calls, {"numpy", "rich", *HEAVY})
    assert {call: modules for call, modules in loaded.items() if modules} == {}
    assert len(loaded) == len(calls)


def test_a_search_by_names_loads_no_model_library(tmp_path: Path) -> None:
    from setnet.library import Example, Library

    with Library.create(tmp_path / "library") as library:
        library.people.add("Ann", [Example(np.eye(128, dtype=np.float32)[0])])
    call = ["search", "ann", "--library", str(tmp_path / "library")]
    assert imported_by([call], HEAVY | NOT_FOR_A_SEARCH) == {" ".join(call): set()}


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
    page = found.get_help(typer.Context(found, info_name=path))
    assert re.findall(r"<[a-z]+(?: range)?>", page) == []  # types of Python


GROUPS = [name for name in COMMANDS if hasattr(command(name), "commands") and name != "models"]


@pytest.mark.parametrize("words", [[], *([name] for name in GROUPS)], ids=str)
def test_a_group_alone_and_the_short_option_print_the_help(words: list[str]) -> None:
    bare, short, long = (called(*words, *more) for more in ([], ["-h"], ["--help"]))
    assert bare == short == long
    assert "Usage: setnet" in long[0]
    assert "..." not in long[0].split("Options:")[1]  # each command has its whole first sentence


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["serch"], "Did you mean 'search'"),
        (["people", "lst"], "Did you mean 'list'?"),
        (["models", "xyz"], "`setnet models --help` lists them"),
        (["people", "--jsn", "list"], "--jsn"),
    ],
)
def test_an_unknown_command_is_answered_with_the_nearest(words: list[str], message: str) -> None:
    assert message in called(*words, code=2)[1]


@pytest.mark.parametrize(
    ("shell", "typed", "completed"),
    [
        ("bash", "setnet search an", [r"ann\ Lee", "anke"]),
        ("zsh", "setnet people show ann", ['"ann Lee"']),
        ("bash", "setnet search Anke --without b", ["bo"]),
        ("bash", "setnet people merge Bo Ank", ["Anke"]),
        ("bash", "setnet people show x", []),
        ("bash", "setnet peo", ["people"]),
    ],
)
def test_a_shell_completes_the_names_of_saved_people(
    shell: str, typed: str, completed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from setnet.library import Example, Library

    with Library.create(tmp_path / "library") as library:
        for number, name in enumerate(("Anke", "Ann Lee", "Bo")):
            library.people.add(name, [Example(np.eye(128, dtype=np.float32)[number])])
    monkeypatch.setenv("_SETNET_COMPLETE", f"complete_{shell}")
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    for name, value in (words if shell == "bash" else {"_TYPER_COMPLETE_ARGS": typed}).items():
        monkeypatch.setenv(name, value)
    out = setnet(tmp_path / "library").stdout
    assert [name for name in completed if name not in out] == []
    assert len(out.split("\n")) - 1 == max(1, len(completed)) or shell == "zsh"


@pytest.mark.parametrize("missing", [None, "terminal", "display", "app"])
def test_without_arguments_the_page_is_opened_where_somebody_can_see_it(
    missing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[dict[str, Any]] = []
    monkeypatch.setattr("setnet.web.serve", lambda *_, **options: opened.append(options))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", "" if missing == "display" else ":0")
    if missing == "app":
        monkeypatch.setattr("setnet.cli.app.find_spec", lambda _: None)
    done = setnet(None, keys=None if missing == "terminal" else "")
    assert [options["open_page"] for options in opened] == ([] if missing else [True])
    assert ("Usage: setnet" in done.stdout) is (missing is not None)


def test_every_command_with_a_library_takes_it_in_one_way() -> None:
    named = {path: p for path, found in ALL for p in found.params if p.name == "library"}
    assert {tuple(p.opts) for p in named.values()} == {("--library",)}
    assert {p.help for p in named.values()} == {named["setnet search"].help}
    limits = {tuple(p.opts) for _, found in ALL for p in found.params if p.name == "limit"}
    assert limits == {("-n", "--limit")}


def test_exit_codes_and_the_environment_are_on_the_page_of_the_command_line() -> None:
    page = help_pages()
    for code in EXIT_CODES:
        assert f"| {code} |" in page
    sources = (file.read_text(encoding="utf-8") for file in REPOSITORY.glob("src/setnet/**/*.py"))
    used = {name for text in sources for name in re.findall(r"SETNET_[A-Z_]+", text)}
    assert {name for name in used if not name.endswith("_H")} == set(ENVIRONMENT)


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
