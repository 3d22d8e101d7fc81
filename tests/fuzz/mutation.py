"""Changes to bytes and to JSON values, decided by `Choices`."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from tests.fuzz.choices import Choices

__all__ = ["NUMBERS", "json_bytes", "junk", "mutated_bytes", "mutated_json"]

NUMBERS = [0, 1, -1, 2, 15, 16, 63, 64, 255, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63)]
DEEP, DIGITS = "@deep@", "@digits@"  # stand for JSON that Python values cannot hold
JUNK: list[Any] = [
    *NUMBERS, None, True, False, "", "x", "\0", "\ud800", "é" * 300, "x" * 5000, "1", "nan", "../..", [], {},
    [1, 2], [[]], {"x": 1}, {"": None}, 1.5, -0.0, 1e-320, 1e308, float("nan"), float("inf"), float("-inf"),
    2**64, 10**30, -(10**30), DEEP, DIGITS,
]  # fmt: skip


def mutated_bytes(choices: Choices, data: bytes, words: Sequence[bytes] = ()) -> bytes:
    """Overwrite, insert, cut, repeat or exchange parts of ``data``; ``words`` are parts of the format."""
    changed = bytearray(data)
    for _ in range(choices.several()):
        at = choices.below(len(changed) + 1)
        match choices.below(8):
            case 0:
                changed[at : at + 1] = choices.take(1)
            case 1:
                if at < len(changed):
                    changed[at] ^= 1 << choices.below(8)
            case 2:
                size = choices.pick((1, 2, 4, 8))
                number = choices.pick(NUMBERS) % 2 ** (8 * size)
                changed[at : at + size] = number.to_bytes(size, choices.pick(("little", "big")))
            case 3:
                del changed[at : at + 1 + choices.below(64)]
            case 4:
                changed[at:at] = bytes(choices.below(500)) if choices.once_in(2) else choices.take(8)
            case 5:
                source = choices.below(len(changed) + 1)
                changed[at:at] = changed[source : source + 1 + choices.below(64)]
            case 6:
                del changed[at:]
            case _:
                word = choices.pick(words) if words else b"\xff" * 4
                changed[at : at + (len(word) if choices.once_in(2) else 0)] = word
    return bytes(changed)


def junk(choices: Choices) -> Any:
    """Return a value that fits hardly anywhere."""
    return copy.deepcopy(choices.pick(JUNK))


def mutated_json(choices: Choices, value: Any, words: Sequence[Any] = ()) -> Any:
    """Return a copy of a JSON value with some parts replaced, removed, renamed, repeated or wrapped."""
    root = [copy.deepcopy(value)]
    for _ in range(choices.several(4)):
        _change_one(choices, root, words)
    return root[0] if root else None


def _change_one(choices: Choices, root: Any, words: Sequence[Any]) -> None:
    holder, key = root, 0
    while isinstance(holder[key], (dict, list)) and holder[key] and choices.below(4):
        holder = holder[key]
        key = choices.pick(sorted(holder, key=str) if isinstance(holder, dict) else range(len(holder)))
    match choices.below(6):
        case 0 | 1:
            holder[key] = junk(choices)
        case 2 if words:
            holder[key] = copy.deepcopy(choices.pick(words))
        case 3 if holder is not root:
            del holder[key]
            if not root[0] and choices.once_in(2):
                root[0] = junk(choices)
        case 4 if isinstance(holder, dict):
            holder[str(choices.pick([*words, "x", "", key]))] = holder[key]
        case 4 if holder is not root:
            holder.extend([holder[key]] * choices.pick((1, 2, 50)))
        case 5 if isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
            holder[key] = -holder[key] if choices.once_in(2) else holder[key] + 1
        case _:
            holder[key] = [holder[key]]
    if not root:
        root.append(None)


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON; parts of it may be nested or long beyond what parsers take."""
    text = json.dumps(value).encode()
    deep = b"[" * 50_000 + b"]" * 50_000
    return text.replace(b'"%s"' % DEEP.encode(), deep).replace(b'"%s"' % DIGITS.encode(), b"1" * 5000)
