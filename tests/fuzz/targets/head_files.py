"""Damaged and crafted heads: safetensors files with JSON about what the tensors are for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from setnet.heads import Head, Logistic, SetNet
from setnet.heads.layers import Affine, Blocks, Input, NetVLAD, Product
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import json_bytes, mutated_bytes, mutated_json
from tests.fuzz.target import Function, attempt

DIM = 4
WORDS = ["F16", "F32", "BF16", "I64", "BOOL", "netvlad", "product", "affine", "blocks", "format", "share", 4]


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that damages a head, loads it and makes set vectors with it."""
    sound = [_saved(head, folder) for head in _heads()]
    file = folder / "damaged.safetensors"
    elements = np.random.default_rng(0).normal(size=(3, DIM)).astype(np.float32)

    def use() -> None:
        net = SetNet.load(file)
        if net.dim * net.head.lifted_dim < 1 << 20:
            with np.errstate(all="ignore"):  # weights may be as large as they like
                attempt(lambda: net.encode(elements, [1, 2]))
                attempt(lambda: net.score(net.aggregate(elements, [1, 2]), net.describe(elements)))

    def run(data: bytes) -> None:
        choices = Choices(data)
        file.write_bytes(_damaged(choices, choices.pick(sound)))
        attempt(use)

    yield run


def _heads() -> list[Head]:
    rng = np.random.default_rng(5)

    def normal(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return rng.normal(size=shape).astype(np.float32)

    clusters = NetVLAD(normal(DIM, 2), normal(2), normal(2, DIM), share=0.5)
    product = Product((normal(DIM, 8), normal(DIM, 8)))
    logistic = Logistic(20.0, -8.0)
    whitening = Input(normal(DIM), normal(DIM, DIM))
    return [
        Head("both", DIM, 1, logistic, (clusters, product), whitening, (Affine(normal(16, 8), normal(8)),)),
        Head("blocks", DIM, 8, logistic, (product,), output=(Blocks(normal(4, 2, 2)),), about={"n": 1}),
    ]


def _saved(head: Head, folder: Path) -> bytes:
    head.save(folder / "sound.safetensors")
    return (folder / "sound.safetensors").read_bytes()


def _damaged(choices: Choices, sound: bytes) -> bytes:
    """Change what a head says of itself, what the file says of its tensors, their values, or any bytes."""
    length = int.from_bytes(sound[:8], "little")
    header, body = json.loads(sound[8 : 8 + length]), sound[8 + length :]
    match choices.below(5):
        case 0:
            return mutated_bytes(choices, sound)
        case 1:
            body = mutated_bytes(choices, body)
        case 2:
            header = mutated_json(choices, header, WORDS)
        case _:
            about = json_bytes(mutated_json(choices, json.loads(header["__metadata__"]["setnet"]), WORDS))
            if choices.once_in(8):
                about = mutated_bytes(choices, about)
            header["__metadata__"]["setnet"] = about.decode("utf-8", "replace")
    text = json_bytes(header)
    return len(text).to_bytes(8, "little") + text + body
