"""A command that is made of a settings dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest
from typer.testing import CliRunner

from setnet.cli.options import make_app, option, settings_command
from setnet.evaluate import EXPERIMENTS, experiment_module
from setnet.evaluate.settings import Settings, setting
from setnet.evaluate.settings import option as about

TIMES = Annotated[int, option("How often to say it.", min=1)]


@dataclass(frozen=True, kw_only=True)
class Greeting(Settings):
    """Greet some people."""

    place: Path = field(metadata=about("Where.", metavar="DIR", is_argument=True))
    names: Sequence[str] = setting((), "Whom; repeatable [default: nobody].", "--name", metavar="NAME")
    loud: bool = setting(False, "In capitals.")
    share: float = setting(0.5, "Of them.")


def test_fields_are_options_with_their_types_defaults_and_help() -> None:
    seen: list[tuple[Greeting, int]] = []

    def greet(settings: Greeting, times: TIMES = 2) -> None:
        seen.append((settings, times))

    app = make_app()
    app.command()(settings_command(Greeting, greet))
    runner = CliRunner()
    assert runner.invoke(app, ["here"]).exit_code == 0
    words = [
        "there",
        "--name",
        "ann",
        "--name",
        "ben",
        "--loud",
        "--share",
        "0.1",
        "--seed",
        "3",
        "--times",
        "1",
    ]
    assert runner.invoke(app, words).exit_code == 0
    assert seen == [
        (Greeting(place=Path("here")), 2),
        (Greeting(place=Path("there"), names=["ann", "ben"], loud=True, share=0.1, seed=3), 1),
    ]
    page = runner.invoke(app, ["--help"]).output
    for words_of in ("Greet some people.", "--name NAME", "default: nobody", "--no-loud", "[default: 0.5]"):
        assert words_of in page
    for wrong in ([], ["here", "--seed", "-1"], ["here", "--share", "half"], ["here", "--times", "0"]):
        assert runner.invoke(app, wrong).exit_code == 2
    assert len(seen) == 2


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_help_of_evaluate_has_the_first_sentence_of_each_experiment(name: str) -> None:
    about = inspect.getdoc(experiment_module(name).Settings) or ""
    assert about.partition("\n")[0] == EXPERIMENTS[name]
