"""What must not work: missing tokens, traversal, bombs, floods, other sites."""

from __future__ import annotations

import asyncio
import io
import os
import random
import shutil
import signal
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image

from setnet.errors import InvalidInputError
from setnet.sandbox import Limits
from setnet.web import WebSettings, create_app
from setnet.web.guard import COOKIE
from setnet.web.state import ServerState

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"
TOKEN = "a-token-of-some-length"
JPEG = {"Content-Type": "image/jpeg"}


def state_of(client: TestClient) -> ServerState:
    app = client.app
    assert isinstance(app, FastAPI)
    state: ServerState = app.state.server
    return state


@pytest.fixture(scope="module")
def guarded(
    made: Any, tmp_path_factory: pytest.TempPathFactory, open_client: Callable[..., Any]
) -> Iterator[TestClient]:
    place = tmp_path_factory.mktemp("guarded")
    shutil.copytree(made.library, place / "library")
    settings = WebSettings(host="0.0.0.0", token=TOKEN, cors=("https://friend.example",), wrong_tokens=1000)
    with open_client(place / "library", settings) as client:
        yield client


def test_an_open_address_without_a_token_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="token"):
        WebSettings(host="0.0.0.0")
    with pytest.raises(InvalidInputError, match="16 characters"):
        WebSettings(token="short")


@pytest.mark.parametrize("origin", ["*", "example.org", "https://example.org/", "https://*.example.org"])
def test_only_single_origins_are_let_in(origin: str) -> None:
    with pytest.raises(InvalidInputError, match="one origin is expected"):
        WebSettings(cors=(origin,))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer "},
        {"X-Setnet-Token": "ä"},
        {"Cookie": f"{COOKIE}=wrong"},
        {"Cookie": 'x="; ; =='},
    ],
)
def test_wrong_tokens_get_nothing(guarded: TestClient, headers: dict[str, str]) -> None:
    encoded = {name: value.encode() for name, value in headers.items()}
    for path in (
        "/status",
        "/photos",
        "/photos/1/file",
        "/people",
        "/index/events",
        "/openapi.json",
    ):
        answer = guarded.get(f"{API}{path}", headers=encoded)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
    assert guarded.post(f"{API}/session", json={"token": "wrong"}).status_code == 401


def test_the_right_token_opens_by_header_or_cookie(guarded: TestClient) -> None:
    assert guarded.get(f"{API}/status", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert guarded.get(f"{API}/status", headers={"X-Setnet-Token": TOKEN}).status_code == 200
    answer = guarded.post(f"{API}/session", json={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie, "a session of its own"
    assert guarded.get(f"{API}/status").status_code == 200  # by the cookie
    session = guarded.cookies[COOKIE]
    guarded.cookies.clear()
    for value, status in ((session, 200), (TOKEN, 401), (f"9{session}", 401), (f"{session}0", 401)):
        among_others = {"Cookie": f"a[b]=1; {COOKIE}={value}"}
        assert guarded.get(f"{API}/status", headers=among_others).status_code == status
    assert guarded.get("/healthz").status_code == 200
    assert guarded.get("/").status_code == 200


def test_a_page_cannot_make_the_server_call_other_machines(shared: TestClient) -> None:
    for folder in ("http://127.0.0.1:9/", "zip://::http://127.0.0.1:9/p.zip"):
        answer = shared.post(f"{API}/index", json={"folders": [folder]})
        assert answer.status_code == 422
        assert "folders of this machine" in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_other_sites_cannot_write(shared: TestClient, headers: dict[str, str]) -> None:
    for call in (("DELETE", "/people/x"), ("POST", "/index"), ("POST", "/search")):
        assert shared.request(call[0], f"{API}{call[1]}", json={}, headers=headers).status_code == 403
    plain = {"Content-Type": "text/plain"}
    assert (
        shared.post(
            f"{API}/forget/everything", content=b'{"confirm":"forget everything"}', headers=plain
        ).status_code
        == 415
    )


def test_other_sites_cannot_embed_or_rebind(shared: TestClient) -> None:
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert shared.get(f"{API}/photos/1/thumbnail", headers=embedded).status_code == 403
    assert (
        shared.get("/", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).status_code
        == 200
    )
    assert shared.get(f"{API}/status", headers={"Host": "evil.example:8422"}).status_code == 421
    assert shared.get(f"{API}/status", headers={"Host": "[::1]:8422"}).status_code == 200


def test_cors_is_only_for_whom_it_was_asked(shared: TestClient, guarded: TestClient) -> None:
    auth = {"Authorization": f"Bearer {TOKEN}"}
    friend = guarded.get(f"{API}/status", headers={"Origin": "https://friend.example", **auth})
    assert friend.headers["access-control-allow-origin"] == "https://friend.example"
    assert (
        "access-control-allow-origin"
        not in guarded.get(f"{API}/status", headers={"Origin": "https://x.example", **auth}).headers
    )
    assert (
        "access-control-allow-origin"
        not in shared.get(f"{API}/status", headers={"Origin": "http://x.example"}).headers
    )


def test_every_answer_carries_the_safety_headers(shared: TestClient) -> None:
    for path in ("/", "/docs", f"{API}/status", "/static/0/js/main.js", "/nothing"):
        headers = shared.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
    assert "<script>" not in shared.get("/").text
    assert " style=" not in shared.get("/").text


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2f..%2f..%2fetc/passwd",
        "/static//etc/passwd",
        f"{API}/photos/../../etc/passwd",
        f"{API}/photos/..%2F..%2Fetc%2Fpasswd/file",
        f"{API}/photos/1%00/file",
        f"{API}/photos/-1/file",
        f"{API}/photos/1e3/file",
        f"{API}/photos/{'9' * 18}/file",
        f"{API}/photos/\u0661/file",
    ],
)
def test_paths_lead_nowhere(shared: TestClient, path: str) -> None:
    answer = shared.get(path)
    assert answer.status_code in (404, 422)
    assert "root:" not in answer.text
    assert "import" not in answer.text


def test_links_out_of_the_folders_are_refused(
    made: Any, tmp_path: Path, open_client: Callable[..., Any]
) -> None:
    from setnet.library import Library

    photos, secret = tmp_path / "photos", tmp_path / "secret.jpg"
    photos.mkdir()
    shutil.copy(made.photos / "2016/alone.jpg", photos / "mine.jpg")
    shutil.copy(made.photos / "2016/pair.jpg", secret)
    with Library.create(tmp_path / "library") as library:
        library.index([photos], workers=0)
    with open_client(tmp_path / "library") as client:
        photo = client.get(f"{API}/photos").json()["photos"][0]
        assert client.get(f"{API}/photos/{photo['id']}/file").status_code == 200
        (photos / "mine.jpg").unlink()
        (photos / "mine.jpg").symlink_to(secret)
        for part in ("file", "thumbnail?size=640"):
            assert client.get(f"{API}/photos/{photo['id']}/{part}").status_code == 403
        (photos / "mine.jpg").unlink()
        assert client.get(f"{API}/photos/{photo['id']}/file").status_code == 404
        os.mkfifo(photos / "mine.jpg")
        assert client.get(f"{API}/photos/{photo['id']}/file").status_code == 403


def _png(width: int, height: int) -> bytes:
    """Return a PNG of black pixels: a few kilobytes that unpack to width x height."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    row = b"\0" * ((width + 7) // 8 + 1)
    pixels = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_bombs_and_rubbish_are_refused_and_the_server_goes_on(
    shared: TestClient, portrait: Callable[[str], bytes]
) -> None:
    bomb = _png(40_000, 40_000)
    assert len(bomb) < 1_000_000
    answer = shared.post(f"{API}/faces", content=bomb, headers={"Content-Type": "image/png"})
    assert answer.status_code == 422
    assert "million" in answer.json()["detail"]
    good = portrait("P001")
    for rubbish in (b"", b"no image", good[:500], b"GIF89a" + b"\xff" * 200):
        assert shared.post(f"{API}/faces", content=rubbish, headers=JPEG).status_code == 422
    # a decoder may still make a picture of a head with noise, or nothing, behind it
    for rest in (bytes(3000), *(random.Random(seed).randbytes(3000) for seed in range(8))):
        noise = good[:2000] + rest
        assert shared.post(f"{API}/faces", content=noise, headers=JPEG).status_code in (200, 422)
    assert len(shared.post(f"{API}/faces", content=good, headers=JPEG).json()["faces"]) == 1


def test_a_face_process_that_died_is_replaced(shared: TestClient, portrait: Callable[[str], bytes]) -> None:
    assert shared.post(f"{API}/faces", content=portrait("P001"), headers=JPEG).status_code == 200
    (process,) = state_of(shared).pool._pool._calls
    process.kill()
    process._process.wait()
    assert shared.post(f"{API}/faces", content=portrait("P001"), headers=JPEG).status_code == 200


def test_photos_are_never_opened_in_the_servers_own_process(
    own: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a hostile photo could take the server along")

    monkeypatch.setattr("setnet.faces.open_photo", opened)
    photo = next(p for p in own.get(f"{API}/photos").json()["photos"] if p["faces"])
    assert own.get(f"{API}/photos/{photo['id']}/thumbnail").content[:2] == b"\xff\xd8"
    person = {"name": "Ann", "photo_faces": [{"photo": photo["id"], "face": 0}]}
    assert own.post(f"{API}/people", json=person).json()["has_picture"]


def test_a_photo_that_blocks_its_process_costs_one_thumbnail(
    own: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = state_of(own).drawing
    first, second, *_ = (photo["id"] for photo in own.get(f"{API}/photos").json()["photos"])
    size = "size=640"  # none that was made while indexing
    assert own.get(f"{API}/photos/{first}/thumbnail?{size}").status_code == 200
    with monkeypatch.context() as patch:
        for process in drawing._pool._calls:
            os.kill(process._process.pid, signal.SIGSTOP)
            patch.setattr(process, "_limits", Limits(seconds=0.01))  # a stopped process never answers
        answer = own.get(f"{API}/photos/{second}/thumbnail?{size}")
    assert answer.status_code == 404
    assert "took longer" in answer.json()["detail"]
    assert own.get(f"{API}/photos/{second}/thumbnail?{size}").status_code == 200


def test_a_file_whose_reader_went_away_at_once_is_closed(made: Any) -> None:
    from setnet.library import Library
    from setnet.web.files import open_inside

    with Library.open(made.library) as library:
        opened = open_inside(library, next(library.photos.all_photos()))
    number, pieces = opened.file.fileno(), opened.chunks()
    os.fstat(number)
    del opened, pieces
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_a_full_queue_is_answered_with_retry_after(
    made: Any, tmp_path: Path, portrait: Callable[[str], bytes]
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    app = create_app(tmp_path / "library", WebSettings(face_workers=1, face_queue=2))

    async def flood() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            calls = [client.post(f"{API}/faces", content=portrait("P001"), headers=JPEG) for _ in range(12)]
            return await asyncio.gather(*calls)

    try:
        answers = asyncio.run(flood())
    finally:
        asyncio.run(app.state.server.close())
    refused = [a for a in answers if a.status_code == 503]
    assert len(refused) == 9
    assert all(int(a.headers["retry-after"]) > 0 for a in refused)
    assert all(len(a.json()["faces"]) == 1 for a in answers if a.status_code == 200)


def test_uploads_leave_no_trace_on_disk(
    own: TestClient, portrait: Callable[[str], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setenv("TMPDIR", str(spool))
    monkeypatch.setattr("tempfile.tempdir", str(spool))
    large = io.BytesIO()
    Image.effect_noise((1400, 1400), 90).convert("RGB").save(large, "PNG")  # larger than forms keep in memory
    before = _files(tmp_path)
    assert own.post(f"{API}/faces", files={"image": ("n.png", large.getvalue())}).status_code == 200
    assert own.post(f"{API}/faces", content=portrait("P001"), headers=JPEG).status_code == 200
    assert _files(tmp_path) == before


def test_faces_of_uploads_are_forgotten_in_time_without_being_asked_for(
    made: Any, tmp_path: Path, portrait: Callable[[str], bytes], open_client: Callable[..., Any]
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    with open_client(tmp_path / "library", WebSettings(face_lifetime=0.0)) as client:
        answer = client.post(f"{API}/faces", content=portrait("P001"), headers=JPEG).json()
        assert len(answer["faces"]) == 1
        assert len(client.app.state.server.faces) == 0


def _files(folder: Path) -> dict[Path, int]:
    """Return all files with their times."""
    files = (p for p in folder.rglob("*") if p.is_file())
    return {p: p.stat().st_mtime_ns for p in files if p.suffix not in (".db-wal", ".db-shm")}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b'{"people": NaN}',
        b"[" * 100_000,
        b'{"people":[{"saved":"\\ud800"}]}',
        b'{"people":[{"descriptors":[[NaN]]}]}',
        b'{"people":[{}]}',
        b'{"people":[{"faces":["gone"]}]}',
        b'{"people":[{"saved":"x"}],"limit":1e9}',
        b'{"people":[{"saved":"x"}],"unknown":1}',
        b'{"people":[{"photo_faces":[{"photo":"1","face":99}]}]}',
        b'{"people":[{"images":["%%%"]}]}',
    ],
)
def test_bodies_that_make_no_sense_get_a_sentence(shared: TestClient, body: bytes) -> None:
    answer = shared.post(f"{API}/search", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 404, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.json()["detail"]) > 10
    assert "Traceback" not in answer.text
