"""Replies of a worker process that a photo has taken over: whatever it says, its parent only refuses it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

import numpy as np

from setnet.errors import SetNetError
from setnet.faces import Box, Face, FaceSettings, Quality
from setnet.library.photo_reader import PhotoReader, PhotoTask, faces_to_arrays
from setnet.sandbox import Limits, Message
from setnet.sandbox.messages import receive, send
from setnet.sandbox.process import failure_in
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import json_bytes, mutated_bytes, mutated_json
from tests.fuzz.target import Function

LARGEST = 1 << 20
WORDS = [
    "done",
    "failed",
    "uint8",
    "int64",
    "float32",
    "float64",
    "MemoryError",
    "PhotoError",
    "hash",
    0,
    128,
]


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that changes a reply, receives it and reads the photo's faces from it."""
    reader = PhotoReader(FaceSettings(), workers=1)  # its processes are never started
    replies = [_sent(reply) for reply in _replies()]

    def run(data: bytes) -> None:
        reply = _changed(Choices(data), replies)
        ours, theirs = socket.socketpair()
        with ours, suppress(EOFError, SetNetError):
            with theirs:
                theirs.setblocking(False)
                with suppress(BlockingIOError):
                    theirs.sendall(reply)
            message = receive(ours, LARGEST, monotonic() + 5)
            if failure_in(message, Limits()) is None:
                result = reader._parse(PhotoTask(b"/photo", (bytes(16),)), message)
                assert result.descriptors is None or np.isfinite(result.descriptors).all()

    yield run


def _replies() -> list[Message]:
    landmarks = np.ones((5, 2), np.float32)
    quality = Quality(size=30.0, score=0.9, sharpness=0.5, yaw=1.0, pitch=2.0, roll=3.0)
    faces = [Face(Box(1, 2, 30, 40), landmarks, 0.9, quality, np.eye(1, 128, dtype=np.float32)[0])] * 2
    seen = {
        "size": 9, "mtime_ns": 1, "is_known": False, "reason": None, "taken": 1.5e9, "width": 48,
        "height": 40,
    }  # fmt: skip
    arrays = {"hash": np.ones(16, np.uint8)}
    return [
        Message("done", seen, arrays | faces_to_arrays(faces, 128)),
        Message("done", seen | {"reason": "damaged"}, arrays),
        Message("done", seen | {"is_known": True}, {"hash": np.zeros(16, np.uint8)}),
        Message("failed", {"kind": "PhotoError", "text": "damaged"}),
    ]


def _sent(message: Message) -> bytes:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(theirs, message)
        theirs.shutdown(socket.SHUT_WR)
        data = b""
        while part := ours.recv(1 << 16):
            data += part
        return data


def _changed(choices: Choices, replies: list[bytes]) -> bytes:
    reply = choices.pick(replies)
    if choices.once_in(4):
        return mutated_bytes(choices, reply)
    length = int.from_bytes(reply[:4], "little")
    text = json_bytes(mutated_json(choices, json.loads(reply[4 : 4 + length]), WORDS))
    if choices.once_in(8):
        text = mutated_bytes(choices, text)
    body = reply[4 + length :]
    if choices.once_in(4):
        body = mutated_bytes(choices, body)
    return len(text).to_bytes(4, "little") + text + body
