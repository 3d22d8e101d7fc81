"""What an experiment leaves behind: rows of numbers per repeat, settings, versions; kept row by row."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from setnet import __version__
from setnet.durable import replace_file, storage_errors
from setnet.engine import kernel_level
from setnet.errors import InvalidInputError
from setnet.system import peak_memory, usable_cores

FORMAT = 1


def fingerprint(path: Path) -> str:
    """Return a file's name with a fingerprint: no run goes on with other data of the same name."""
    try:
        with path.open("rb") as file:
            return f"{path.name}, SHA-256 {hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from error


# For each repeat; or for each training seed, in each world.
Values = Sequence[float] | Sequence[Sequence[float]]


def mean_and_error(values: Values, draws: Values = ()) -> tuple[float, float]:
    """Return the mean over repeats, or seeds and worlds, and its standard error (nan where nothing tells).

    `draws` are the mean in resamples of people and worlds (`people_draws`), once or by training seed: then
    the error is theirs, and that of seeds added to it. Without them it is that of repeats, or of seeds and
    worlds.

    Examples
    --------
    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    >>> mean_and_error([[1.0, 3.0], [1.0, 3.0]])
    (2.0, 1.0)
    >>> mean_and_error([2.0, 2.0], [1.0, 2.0, 3.0])
    (2.0, 1.0)
    """
    many = np.asarray(values, dtype=np.float64)
    means = [many.mean(axis=tuple(set(range(many.ndim)) - {axis})) for axis in range(many.ndim)]
    variances = [mean.var(ddof=1) / len(mean) for mean in means if len(mean) > 1]
    if len(draws):
        # What resamples of people have in common for all seeds does not average out over these.
        drawn = np.asarray(draws, dtype=np.float64)
        seeds = means[:1] if drawn.ndim > 1 else []
        variances = [drawn.mean(axis=0).var(ddof=1) if drawn.ndim > 1 else drawn.var(ddof=1)]
        variances += [mean.var(ddof=1) / len(mean) for mean in seeds if len(mean) > 1]
    return float(many.mean()), float(np.sqrt(sum(variances))) if variances else float("nan")


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes
    ----------
    name
        The method.
    values
        For each measure, its value in every repeat (or for every seed and world).
    facts
        Single numbers and words: bytes per item, seconds, (w, b).
    bound
        True for an upper bound, which takes no part in the contest for the best.
    draws
        For some measures, its mean in resamples of people and worlds, the same resamples for all rows.
    """

    name: str
    values: Mapping[str, Values] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    bound: bool = False
    draws: Mapping[str, Values] = field(default_factory=dict)

    def estimate(self, key: str) -> tuple[float, float]:
        """Return the mean of a measure and its standard error."""
        return mean_and_error(self.values[key], self.draws.get(key, ()))

    def lead(self, other: Row, key: str) -> tuple[float, float]:
        """Return by how much a measure is above another row's, and the standard error of that difference.

        Both rows saw the same queries and resamples: what these have in common cancels.
        """
        first, second = (np.asarray(row.values[key], np.float64) for row in (self, other))
        draws = [np.asarray(row.draws.get(key, ()), np.float64) for row in (self, other)]
        if first.shape == second.shape and draws[0].shape == draws[1].shape:
            return mean_and_error((first - second).tolist(), (draws[0] - draws[1]).tolist())
        error = float(np.hypot(self.estimate(key)[1], other.estimate(key)[1]))
        return float(first.mean() - second.mean()), error


@dataclass(frozen=True)
class Record:
    """A finished or interrupted experiment."""

    experiment: str
    settings: Mapping[str, Any]
    rows: tuple[Row, ...]
    machine: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)

    def row(self, name: str) -> Row:
        """Return a row by name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise InvalidInputError(
            f"{self.experiment}: no row {name!r}; there are {[row.name for row in self.rows]}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain values; not as copies, since rows hold thousands of numbers."""
        return {"format": FORMAT, **vars(self), "rows": [vars(row) for row in self.rows]}


@dataclass(frozen=True)
class Progress:
    """What an experiment is doing, and how many of its rows are done."""

    doing: str
    done: int
    total: int


OnProgress = Callable[[Progress], None]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during an experiment; ``record`` holds the rows that were finished."""

    def __init__(self, record: Record) -> None:
        super().__init__(f"{record.experiment}: stopped after {len(record.rows)} rows")
        self.record = record


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which NumPy's matrix products use one thread, where threadpoolctl is installed."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


class Run:
    """An experiment under way: each finished row is written at once, and found again by the next run.

    `path` is the JSON file of its rows, from which a run with the same settings continues; None keeps none.
    `total` is how many rows are expected.
    """

    def __init__(
        self,
        experiment: str,
        settings: Mapping[str, Any],
        path: Path | None = None,
        progress: OnProgress | None = None,
    ) -> None:
        self.experiment, self.progress, self.total = experiment, progress, 0
        self.settings = json.loads(json.dumps(settings))
        self.path = path
        self.rows: dict[str, Row] = {}
        self.extra: dict[str, Any] = {}
        self._started, self._cpu_started = time.monotonic(), time.process_time()
        self._earlier: Mapping[str, Any] = {}
        if path is not None and path.is_file():
            stored = read_record(path)
            if (stored.experiment, stored.settings) != (experiment, self.settings):
                raise InvalidInputError(
                    f"{path} holds {stored.experiment!r} with other settings: "
                    f"{_difference(stored.settings, self.settings)}; use another file or folder, or delete it"
                )
            self.rows = {row.name: row for row in stored.rows}
            self.extra, self._earlier = dict(stored.extra), stored.machine

    def has(self, name: str) -> bool:
        """Whether a row is there already."""
        return name in self.rows

    def say(self, doing: str) -> None:
        """Report what is being done."""
        if self.progress is not None:
            self.progress(Progress(doing, len(self.rows), max(self.total, len(self.rows))))

    def add(self, row: Row) -> None:
        """Keep a finished row."""
        self.rows[row.name] = row
        self.save()

    def note(self, **facts: Any) -> None:
        """Keep facts about the whole experiment."""
        self.extra.update(facts)
        self.save()

    def record(self) -> Record:
        """Return what there is so far."""
        earlier = self._earlier
        seconds = earlier.get("seconds", 0.0) + time.monotonic() - self._started
        cpu_seconds = earlier.get("cpu_seconds", 0.0) + time.process_time() - self._cpu_started
        machine = _machine(seconds, cpu_seconds)
        machine["peak_bytes"] = max(machine["peak_bytes"], earlier.get("peak_bytes", 0))
        return Record(self.experiment, self.settings, tuple(self.rows.values()), machine, dict(self.extra))

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self.path is None:
            return
        text = json.dumps(self.record().as_json(), default=_plain)
        with storage_errors(self.path, "cannot write "):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, text.encode(), mode=0o666)


def read_record(path: Path) -> Record:
    """Read what a run wrote."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["format"] > FORMAT:
            raise InvalidInputError(f"{path} is of format {stored['format']}, this setnet reads {FORMAT}")
        rows = tuple(Row(**row) for row in stored["rows"])
        return Record(stored["experiment"], stored["settings"], rows, stored["machine"], stored["extra"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"{path} is no result of `setnet evaluate`: {error!r}") from error


def _difference(stored: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    keys = [key for key in {**stored, **given} if stored.get(key) != given.get(key)]
    return ", ".join(f"{key} {stored.get(key)!r} there, {given.get(key)!r} requested" for key in keys[:3])


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a result")


def _machine(seconds: float, cpu: float) -> dict[str, Any]:
    """Return what the numbers depend on besides the settings."""
    versions = {"setnet": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "scipy", "onnxruntime")}
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {
        "versions": versions,
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": usable_cores(),
        "kernels": kernel_level(),
        "load": round(load, 1),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "peak_bytes": peak_memory(),
        "date": time.strftime("%Y-%m-%d"),
    }


def processor() -> str:
    """Return the name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
