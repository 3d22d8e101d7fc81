"""Knows model files that users bring, by their hash, and the kinds of model that a file can be."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from setnet.errors import ModelError, one_of
from setnet.faces.registry.entry import ModelEntry
from setnet.faces.registry.file_hash import sha256_of
from setnet.faces.registry.models import model_entries

_FILE = Path(__file__).with_name("known_files.toml")


@dataclass(frozen=True)
class KnownFile:
    """A model file known by its hash, with the name it gets; one of a registered model needs no kind."""

    name: str
    kind: str | None
    licence: str
    terms: str
    origin: str
    sha256: str

    @classmethod
    def of_entry(cls, entry: ModelEntry) -> KnownFile:
        """Return the only file of a registered model."""
        return cls(entry.name, None, entry.licence, entry.terms, entry.origin, str(entry.files[0].sha256))


def model_kinds() -> Mapping[str, str]:
    """Return the kinds of descriptor model that can be added, each with what it is."""
    return {name: str(facts["about"]) for name, facts in _tables()["kinds"].items()}


def crop_of_kind(kind: str) -> dict[str, Any]:
    """Return how models of a kind want their crops, as keys of a registry entry."""
    kinds = _tables()["kinds"]
    if kind not in kinds:
        raise one_of("kind of model", kind, sorted(kinds))
    return {key: value for key, value in kinds[kind].items() if key != "about"}


def kind_in_name(file: Path) -> str | None:
    """Return the kind that a file's name speaks of, as a suggestion.

    >>> kind_in_name(Path("AdaFace_ir50.onnx")), kind_in_name(Path("model.onnx"))
    ('adaface', None)
    """
    return next((kind for kind in model_kinds() if kind in file.name.lower()), None)


def recognised(file: Path) -> KnownFile | None:
    """Return what is known of a model file by its hash: one of a model that can be added, or of the list.

    Raises
    ------
    ModelError
        When there is no such file.
    """
    if not file.is_file():
        raise ModelError(f"no model file {file}")
    found = sha256_of(file)
    for entry in model_entries().values():
        if len(entry.files) == 1 and entry.files[0].wheel is not None and entry.files[0].sha256 == found:
            return KnownFile.of_entry(entry)
    return next((known for known in known_files() if known.sha256 == found), None)


def known_files() -> list[KnownFile]:
    """Return the listed files."""
    return [
        KnownFile(f["name"], f["kind"], f["licence"], f.get("terms", ""), f["from"], f["sha256"])
        for f in _tables()["files"]
    ]


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
