"""The settings of an index and the options of a search, checked where they enter."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np

from setnet.errors import InvalidInputError, StorageError, one_of
from setnet.index.search.query import EXAMPLES
from setnet.index.storage.shape import SetSpec, Shape
from setnet.sets import SET_LOGISTIC, Aggregator, Logistic, Mean, codec

__all__ = [
    "GIVEN",
    "MATCHINGS",
    "MAX_DIM",
    "MAX_SET_DIM",
    "MODES",
    "PRECISIONS",
    "MoreOptions",
    "Options",
    "Settings",
    "as_logistic",
    "chosen_head",
    "head_named",
    "spec_of",
    "whole",
]

MODES = ("exact", "fast", "set", "tags")
MATCHINGS = ("greedy", "optimal")
PRECISIONS = ("float32", "float16")
MAX_DIM = 4096
MAX_SET_DIM = 4096
GIVEN = "given"  # the name of set vectors that the caller makes


@dataclass(frozen=True, slots=True)
class Settings:
    """What is fixed when an index is made."""

    shape: Shape
    logistic: Logistic
    set_logistic: Logistic

    @classmethod
    def new(
        cls,
        dim: int,
        precision: str,
        logistic: tuple[float, float] | Logistic,
        head: Aggregator | None,
        set_dim: int | None,
        set_bits: int,
        set_logistic: tuple[float, float] | Logistic | None,
    ) -> Settings:
        """Return checked settings; `setnet.index.SetIndex.create` says what each means."""
        if precision not in PRECISIONS:
            raise one_of("precision", precision, PRECISIONS)
        sets = spec_of(head) if head else None
        if head is None and set_dim is not None:
            sets = SetSpec(GIVEN, whole("set_dim", set_dim, 1, MAX_SET_DIM), set_bits)
        of_sets = as_logistic(set_logistic or (head.logistic if head else SET_LOGISTIC))
        return cls(Shape(int(dim), precision, sets), as_logistic(logistic), of_sets)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as the catalogue keeps them."""
        sets = self.shape.sets
        return {
            "dim": self.shape.dim,
            "precision": self.shape.precision,
            "logistic": [self.logistic.w, self.logistic.b],
            "sets": asdict(sets) if sets else None,
            "set_logistic": [self.set_logistic.w, self.set_logistic.b],
        }

    @classmethod
    def of_json(cls, stored: dict[str, Any]) -> Settings:
        """Return settings read from the catalogue."""
        try:
            sets = SetSpec(**stored["sets"]) if stored["sets"] else None
            shape = Shape(stored["dim"], stored["precision"], sets)
            return cls(shape, Logistic(*stored["logistic"]), Logistic(*stored["set_logistic"]))
        except (KeyError, TypeError) as error:
            raise StorageError(f"the index's settings are damaged: {error!r}") from None

    def meta(self) -> dict[str, Any]:
        """Return the catalogue's entries: the settings and their checksum."""
        settings = self.as_json()
        return {
            "settings": settings,
            "settings_crc": zlib.crc32(json.dumps(settings, sort_keys=True).encode()),
        }


class MoreOptions(TypedDict, total=False):
    """The options of a search that have defaults, by name."""

    candidates: int
    at_least: int
    only: bool
    aggregate_query: bool
    examples: str
    matching: str
    threads: int | None


@dataclass(frozen=True, slots=True)
class Options:
    """How a search is to be done; `setnet.index.SetIndex.search` says what each means."""

    k: int = 100
    mode: str = "exact"
    candidates: int = 2000
    at_least: int = 0
    only: bool = False
    aggregate_query: bool = False
    examples: str = "aggregate"
    matching: str = "greedy"
    threads: int | None = None

    def __post_init__(self) -> None:
        for name, valid in (("mode", MODES), ("matching", MATCHINGS), ("examples", EXAMPLES)):
            if getattr(self, name) not in valid:
                raise one_of(name, getattr(self, name), valid)
        for name, least in (("k", 0), ("candidates", 1), ("at_least", 0)):
            whole(name, getattr(self, name), least)
        if self.threads is not None:
            whole("threads", self.threads, 1)
        if self.aggregate_query and self.mode not in ("set", "fast"):
            raise InvalidInputError(
                f"aggregate_query needs set vectors: use mode 'set' or 'fast', not {self.mode!r}"
            )

    @property
    def of_elements(self) -> bool:
        """Whether items must satisfy conditions on their elements."""
        return bool(self.at_least or self.only)


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a whole number within its limits, or raise an error naming both."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidInputError(f"{name} must be a whole number, not {value!r}")
    if value < least or (most is not None and value > most):
        limits = f"{least} to {most}" if most is not None else f"{least} and more"
        raise InvalidInputError(f"{name} is {value}: valid are {limits}")
    return int(value)


def as_logistic(value: tuple[float, float] | Logistic) -> Logistic:
    """Return a `Logistic` from itself or from a pair (w, b)."""
    if isinstance(value, Logistic):
        return value
    try:
        w, b = (float(v) for v in value)
    except (TypeError, ValueError):
        raise InvalidInputError(f"logistic must be a pair (w, b), not {value!r}") from None
    return Logistic(w, b)


def chosen_head(
    head: Aggregator | str | None, dim: int, set_dim: int | None, set_bits: int
) -> Aggregator | None:
    """Return what makes the set vectors of a new index; None when nobody does or the caller will."""
    whole("dim", dim, 1, MAX_DIM)
    codec.row_bytes(dim, set_bits)
    if head is None:
        return Mean(dim, bits=set_bits) if set_dim is None else None
    made = head_named(head, dim, set_bits) if isinstance(head, str) else head
    if made is not None and made.element_dim not in (None, dim):
        raise InvalidInputError(
            f"head {made.name!r} takes {made.element_dim}-D elements, this index has {dim}-D"
        )
    return made


def spec_of(head: Aggregator) -> SetSpec:
    """Return what an index notes of the maker of its set vectors."""
    return SetSpec(head.name, head.dim, head.bits, getattr(head, "fingerprint", ""))


def head_named(name: str, dim: int, bits: int) -> Aggregator | None:
    """Return the aggregator of that name: the mean, none, or a head shipped or at a path."""
    if name == "none":
        return None
    if name == "mean":
        return Mean(dim, bits=bits)
    from setnet.sets import SetNet  # reads a file; most searches never need it

    head: Aggregator = SetNet.load(name)
    return head
