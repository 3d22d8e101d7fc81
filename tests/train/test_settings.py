from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from setnet.errors import InvalidInputError
from setnet.train.settings import TrainingSettings, load_settings, presets


def test_the_paper_preset_is_the_paper() -> None:
    paper = load_settings("paper")
    assert (paper.backbone.name, paper.backbone.dim, paper.aggregator.clusters) == ("resnet50", 128, 8)
    assert (paper.augment.short_side, paper.augment.rotation, paper.augment.flip) == (256, 10.0, True)
    assert 2 * paper.sets.identities == paper.pretrain.batch == 84
    for schedule, rate in ((paper.pretrain, 0.001), (paper.sets, 0.0001)):
        assert (schedule.rate, schedule.momentum, schedule.weight_decay) == (rate, 0.9, 0.001)


@pytest.mark.parametrize("name", presets())
def test_presets_survive_being_stored(name: str) -> None:
    settings = load_settings(name)
    assert TrainingSettings.from_dict(settings.as_dict()) == settings


def test_overrides_are_typed() -> None:
    changed = load_settings(
        "tiny", ["sets.steps=7", "sets.sizes=[2, 3]", "sets.loss=contrastive", "sets.rate=1", "seed=3"]
    )
    assert (changed.sets.steps, changed.sets.sizes, changed.sets.loss) == (7, (2, 3), "contrastive")
    assert (changed.sets.rate, changed.seed) == (1.0, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("sets.stepz=3", "'steps'"),
        ("set.steps=3", "unknown settings section 'set'"),
        ("sets.steps=many", "must be a int"),
        ("sets.steps", "section.name=value"),
        ("seed=abc", "seed must be a whole number"),
        ("sets.sizes=[]", "list of set sizes"),
        ("sets.sizes=[0, 2]", "list of set sizes"),
        ('sets.sizes=["two"]', "list of set sizes"),
        ("sets.drops=[2.0]", "shares from 0 to 1"),
        ("sets.identities=0", "more than 0"),
        ("sets.log_every=0", "more than 0"),
        ("sets.rate=nan", "more than 0"),
        ("aggregator.clusters=-1", "more than 0"),
        ("sets.clip=-1.0", "0 or more"),
    ],
)
def test_bad_overrides_name_the_remedy(change: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        load_settings("tiny", [change])


def test_an_unknown_preset_lists_the_known() -> None:
    with pytest.raises(InvalidInputError, match=r"'default', 'paper', 'tiny', 'a path ending in \.toml'"):
        load_settings("huge")


def test_settings_may_stand_in_a_file_of_the_users(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[sets]\nsteps = 7\n")
    settings = load_settings(str(own), ["sets.rate=0.5"])
    assert (settings.preset, settings.sets.steps, settings.sets.rate) == ("own", 7, 0.5)
    for text in ("[sets\n", None):
        own.unlink() if text is None else own.write_text(text)
        with pytest.raises(InvalidInputError, match=r"own\.toml: cannot read the settings"):
            load_settings(str(own))


@pytest.mark.parametrize(
    "values", [None, 5, [{}], {"sets": []}, {"sets": 3}, {"seed": "x"}, {"seed": float("inf")}, {"seed": [1]}]
)
def test_what_holds_no_settings_is_refused(values: Any) -> None:
    with pytest.raises(InvalidInputError, match="must be"):
        TrainingSettings.from_dict(values)
