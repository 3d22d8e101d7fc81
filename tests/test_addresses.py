"""Files at addresses: how addresses are written, what is listed, and what is never told."""

from __future__ import annotations

import os
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

import pytest

from setnet.addresses import AddressedFile, file_at, files_below, read_address, require_address, to_address
from setnet.errors import InvalidInputError, SetNetError, StorageError
from tests.support.s3_server import s3_server

fsspec = pytest.importorskip("fsspec", reason="addresses need the extra `collection`")

FILES = {"a.jpg": b"one", "2019/b.jpg": b"two", "2019/deep/c.jpg": b"three", "2019/notes.txt": b"no photo"}


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture(params=["zip", "http", "memory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield an address below which the files are."""
    folder = tmp_path / "files"
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    if request.param == "zip":
        with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
            for name in FILES:
                archive.write(folder / name, name)
        yield f"zip://::{tmp_path}/p.zip"
    elif request.param == "memory":
        memory = fsspec.filesystem("memory")
        memory.put(str(folder), "/photos", recursive=True)
        yield "memory://photos"
        memory.rm("/photos", recursive=True)
    elif request.param == "s3":
        with s3_server() as server:
            for name, data in FILES.items():
                server.put(f"photos/{name}", data)
            yield "s3://album/photos"
    else:
        pytest.importorskip("aiohttp")
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()


def listed(address: str, entered: bool = True) -> list[AddressedFile]:
    problems: list[tuple[str, str]] = []
    found = list(
        files_below(address, lambda f: f.endswith(".jpg"), lambda f: entered, lambda *p: problems.append(p))
    )
    assert problems == []
    return found


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("s3://bucket/2019/", "s3://bucket/2019"),
        (Path("s3://bucket/2019"), "s3://bucket/2019"),
        ("file:///data/a.jpg", "/data/a.jpg"),
        ("zip://2019/a.jpg::/data/p.zip", "/data/p.zip::zip://2019/a.jpg"),
        ("/data/p.zip::zip://2019/a.jpg", "/data/p.zip::zip://2019/a.jpg"),
        (Path("zip://2019::s3://bucket/p.zip"), "s3://bucket/p.zip::zip://2019"),
        ("tar://::file:///data/p.tar", "/data/p.tar::tar://"),
    ],
)
def test_an_address_is_kept_in_one_form(given: str | Path, kept: str) -> None:
    assert to_address(given) == kept
    assert to_address(kept) == kept
    assert to_address(Path(kept)) == kept


@pytest.mark.parametrize(
    "given",
    [
        "sftp://anna:hunter2@host/photos",
        "http://host/a.jpg?key=hunter2",
        "s3://b/a.jpg?key=hunter2",
        "zip://::http://hunter2@h/p.zip",
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(given: str) -> None:
    with pytest.raises(InvalidInputError, match="fsspec's configuration") as raised:
        to_address(given)
    assert "hunter2" not in str(raised.value)


def test_a_chain_that_is_no_archive_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="archives are zip and tar"):
        to_address("simplecache://x::s3://bucket")


def test_files_are_listed_and_read(place: str) -> None:
    address = to_address(place)
    require_address(address)
    found = listed(address)
    base = address if address.endswith("://") else address + "/"
    wanted = {base + name: data for name, data in FILES.items() if name.endswith(".jpg")}
    assert {file.address for file in found} == set(wanted)
    for file in found:
        read, data = read_address(file.address, 1000)
        assert (read.size, data) == (file.size, wanted[file.address])
        assert file_at(file.address).address == file.address
    assert [file.address for file in listed(address, entered=False)] == [base + "a.jpg"]
    with pytest.raises(StorageError, match="is not there"):
        read_address(base + "none.jpg", 1000)
    with pytest.raises(InvalidInputError, match="is not there"):
        require_address(base + "none")


def test_names_in_archives_and_object_stores_have_any_characters(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.writestr("2019/why #1?.jpg", b"one")
    (file,) = listed(f"{tmp_path}/p.zip::zip://")
    assert file.address == f"{tmp_path}/p.zip::zip://2019/why #1?.jpg"
    assert read_address(to_address(file.address), 10)[1] == b"one"
    assert to_address("s3://bucket/why #1?.jpg") == "s3://bucket/why #1?.jpg"


def test_a_changed_file_has_another_stamp(tmp_path: Path) -> None:
    place = tmp_path / "p.zip"

    def stamp(data: bytes) -> int:
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("a.jpg", data)
        return file_at(f"{place}::zip://a.jpg").stamp

    assert stamp(b"one") == stamp(b"one")
    assert stamp(b"one") != stamp(b"two")


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.writestr("a.jpg", b"x" * 5000)
    file, data = read_address(f"{tmp_path}/p.zip::zip://a.jpg", 100)
    assert (file.size, len(data)) == (5000, 101)


def test_a_missing_package_and_an_unknown_kind_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"class": "no_such_package.Nowhere", "err": "Install no_such_package"}
    monkeypatch.setitem(import_module("fsspec.registry").known_implementations, "nowhere", entry)
    with pytest.raises(InvalidInputError, match=r"not installed .*no_such_package.* every machine"):
        require_address("nowhere://x")
    with pytest.raises(InvalidInputError, match="never:// is no kind of address"):
        require_address("never://x")


def test_what_a_storage_says_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = type(fsspec.filesystem("memory"))

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("signature=hunter2")

    monkeypatch.setattr(memory, "info", fails)
    with pytest.raises(SetNetError, match=r"cannot be reached or read \(RuntimeError\)") as raised:
        read_address("memory://photos/a.jpg", 10)
    assert "hunter2" not in str(raised.value)


def test_a_refusal_is_not_taken_for_a_missing_file(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = type(fsspec.filesystem("memory"))

    def fails(*_: object, **__: object) -> None:
        raise PermissionError("hunter2")

    monkeypatch.setattr(memory, "exists", lambda *_: False)  # as s3fs answers for a bucket
    with pytest.raises(InvalidInputError, match="is not there"):
        require_address("memory://photos")
    monkeypatch.setattr(memory, "info", fails)
    with pytest.raises(InvalidInputError, match="access is refused"):
        require_address("memory://photos")


def test_a_damaged_archive_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "p.zip").write_bytes(os.urandom(100))
    with pytest.raises(InvalidInputError, match="BadZipFile"):
        require_address(f"{tmp_path}/p.zip::zip://")
