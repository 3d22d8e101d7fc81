"""Settings read from JSON: of an index, of face finding, and of training."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setnet.engine.settings import Settings
from setnet.faces import FaceSettings
from setnet.train.settings import TrainingSettings, load_settings
from tests.fuzz.choices import Choices
from tests.fuzz.mutation import json_bytes, mutated_json
from tests.fuzz.target import Function, attempt

WORDS = ["float16", "mean", "none", "given", 1, 8, 128, [20.0, -8.0], "mtcnn", "yunet", "sface", "default"]


@contextmanager
def target(folder: Path) -> Iterator[Function]:
    """Yield the function that reads settings from changed JSON, and writes what was accepted."""
    index, _ = Settings.new(128, logistic=(20.0, -8.0), head="mean", set_bits=8)
    kinds: list[tuple[dict[str, Any], Callable[[Any], Any]]] = [
        (index.as_json(), lambda value: Settings.of_json(value).as_json()),
        (FaceSettings().to_dict(), lambda value: FaceSettings.from_dict(value).to_dict()),
        (load_settings().as_dict(), lambda value: TrainingSettings.from_dict(value).as_dict()),
    ]

    def run(data: bytes) -> None:
        choices = Choices(data)
        sound, read = choices.pick(kinds)
        try:
            value = json.loads(json_bytes(mutated_json(choices, sound, WORDS)))
        except (ValueError, RecursionError):
            return

        def round_trip() -> None:
            accepted = read(value)
            assert read(accepted) == accepted, "settings that change when they are stored"

        attempt(round_trip)

    yield run
