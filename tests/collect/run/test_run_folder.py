from __future__ import annotations

from pathlib import Path

import pytest

from invented_collect import invented_run
from setnet.collect import CollectRun, run_step, status_of
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError


def test_a_new_run_needs_portraits_and_photos_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="--portraits"):
        CollectRun.begin(tmp_path / "run")
    with pytest.raises(InvalidInputError, match="no folder"):
        CollectRun.begin(tmp_path / "run", portraits=tmp_path / "none", photos=[tmp_path])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(InvalidInputError, match="other files"):
        CollectRun.begin(tmp_path / "full", portraits=tmp_path, photos=[tmp_path])
    with pytest.raises(NotAnIndexError, match="holds no run"):
        CollectRun.open(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"split": (0.5, 0.5, 0.5)}, "add up to 1"),
        ({"encoding": "utf-9"}, "unknown encoding"),
        ({"names_needed": 3}, "names_needed"),
        ({"accept_other": 1.5}, "accept_other"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CollectRun.begin(tmp_path / "run", portraits=tmp_path, photos=[tmp_path], **settings)


def test_a_changed_setting_leaves_only_the_steps_that_need_it_to_do_again(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 3, [(0, 1, 10)])
    states = {step.name: step.state for step in status_of(run).steps}
    assert set(states.values()) - {"to do"} == {"done"}
    changed = CollectRun.begin(run.path, accept_query=0.3)
    states = {step.name: step.state for step in status_of(changed).steps}
    assert [name for name, state in states.items() if state == "to do again"] == ["labels"]
    assert not run_step(changed, "labels").was_done
    assert run_step(changed, "labels").was_done


def test_a_step_says_which_earlier_one_it_needs(tmp_path: Path) -> None:
    run = CollectRun.begin(tmp_path / "run", portraits=tmp_path, photos=[tmp_path])
    with pytest.raises(InvalidInputError, match="needs step names"):
        run_step(run, "portraits")
    with pytest.raises(InvalidInputError, match="unknown step"):
        run_step(run, "everything")


def test_two_processes_do_not_work_on_one_run(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 3, [(0, 1, 10)])
    with run.locked(), pytest.raises(LockedError, match="another process"):
        run_step(CollectRun.open(run.path), "labels", again=True)
