"""What an index is made of and how it scores: dimension, precision, set vectors, logistics."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, StorageError, choice_error
from setnet.heads import ELEMENT_LOGISTIC, Aggregator, Logistic, Mean, codec
from setnet.heads.logistic import SET_LOGISTIC

NORM_LIMIT = 1e18  # dot products of longer vectors would leave float32


def check_int(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Return a whole number within its limits, or raise an error naming both."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidInputError(f"{name} must be a whole number, not {value!r}")
    if value < minimum or (maximum is not None and value > maximum):
        limits = f"{minimum} to {maximum}" if maximum is not None else f"{minimum} and more"
        raise InvalidInputError(f"{name} is {value}: valid are {limits}")
    return int(value)


def is_unicode(text: str) -> bool:
    r"""Return whether a text can be stored: one with half of a surrogate pair cannot.

    >>> is_unicode("é"), is_unicode("\ud800")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_vectors(rows: NDArray[Any], dim: int, name: Callable[..., str]) -> None:
    """Raise unless rows are (n >= 1, dim), finite, not zero and not longer than `NORM_LIMIT`."""
    if rows.ndim != 2 or rows.shape[1] != dim or len(rows) == 0:
        raise InvalidInputError(
            f"{name(0)}: shape {rows.shape} does not fit, expected (n, {dim}) with n >= 1"
        )
    squares = np.einsum("ij,ij->i", rows, rows)
    if np.isfinite(squares).all() and squares.min() > 0:
        return
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    for bad, why in (
        (~np.isfinite(rows).all(axis=1), "holds NaN or infinity"),
        (squares == 0, "is the zero vector"),
        (squares > NORM_LIMIT**2, f"is longer than {NORM_LIMIT:g}"),
    ):
        if bad.any():
            raise InvalidInputError(f"{name(int(np.argmax(bad)))} {why}")


@dataclass(frozen=True, slots=True)
class SetSpec:
    """The set vectors of an index: who made them, their dimension and bits per dimension.

    ``fingerprint`` distinguishes makers of one name; empty where the maker has none.
    """

    name: str
    dim: int
    bits: int
    fingerprint: str = ""

    @property
    def row_bytes(self) -> int:
        """Bytes of one stored set vector."""
        return codec.row_bytes(self.dim, self.bits)


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimension and precision of the elements, and the set vectors beside them if any.

    With ``bytes_per_item`` above 0 elements are kept as budget codes of so many bytes in all, not as floats.
    """

    dim: int
    precision: str
    sets: SetSpec | None
    bytes_per_item: int = 0


class IndexOptions(TypedDict, total=False):
    """The keywords of `setnet.engine.SetIndex.create`, which says what each means."""

    precision: str
    logistic: tuple[float, float] | Logistic
    head: Aggregator | str | None
    set_dim: int | None
    set_bits: int
    set_logistic: tuple[float, float] | Logistic | None
    bytes_per_item: int | None


PRECISIONS = ("float32", "float16")
MAX_DIM = 4096
BUDGETS = (16, 1 << 16)  # bytes of an item
MAX_CODED_DIM = 1024  # of budget codes, whose rotation takes dim³ steps to make
LARGEST_SET_DIM = 1 << 20  # of a head; the caller's own set vectors have up to `MAX_DIM`
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
        *,
        precision: str = "float32",
        logistic: tuple[float, float] | Logistic = ELEMENT_LOGISTIC,
        head: Aggregator | str | None = None,
        set_dim: int | None = None,
        set_bits: int = 32,
        set_logistic: tuple[float, float] | Logistic | None = None,
        bytes_per_item: int | None = None,
    ) -> tuple[Settings, Aggregator | None]:
        """Return checked settings and what makes the set vectors: None when nobody does or the caller will.

        `setnet.engine.SetIndex.create` says what each means.
        """
        check_int("dim", dim, 1, MAX_DIM)
        codec.row_bytes(dim, set_bits)
        if head is None:
            made: Aggregator | None = None
            if set_dim is None and bytes_per_item is None:
                made = Mean(dim, bits=set_bits)
        else:
            made = head_named(head, dim, set_bits) if isinstance(head, str) else head
            if made is not None and made.element_dim not in (None, dim):
                raise InvalidInputError(
                    f"head {made.name!r} takes {made.element_dim}-D elements, this index has {dim}-D"
                )
        sets = spec_of(made) if made else None
        if made is None and set_dim is not None:
            sets = SetSpec(GIVEN, check_int("set_dim", set_dim, 1, MAX_DIM), set_bits)
        of_sets = _as_logistic(set_logistic or (made.logistic if made else SET_LOGISTIC))
        if bytes_per_item is not None:
            check_int("bytes_per_item", bytes_per_item, *BUDGETS)
        shape = _checked(Shape(dim, precision, sets, bytes_per_item or 0))
        return cls(shape, _as_logistic(logistic), of_sets), made

    def as_json(self) -> dict[str, Any]:
        """Return the settings as the catalogue keeps them."""
        sets = self.shape.sets
        return {
            "dim": self.shape.dim,
            "precision": self.shape.precision,
            "logistic": [self.logistic.w, self.logistic.b],
            "sets": asdict(sets) if sets else None,
            "bytes_per_item": self.shape.bytes_per_item,
            "set_logistic": [self.set_logistic.w, self.set_logistic.b],
        }

    @classmethod
    def of_json(cls, stored: Any) -> Settings:
        """Return settings read from the catalogue or the commit log, trusting nothing in them."""
        try:
            sets = None if stored["sets"] is None else SetSpec(**stored["sets"])
            shape = _checked(Shape(stored["dim"], stored["precision"], sets, stored["bytes_per_item"]))
            return cls(shape, Logistic(*stored["logistic"]), Logistic(*stored["set_logistic"]))
        except (AttributeError, KeyError, TypeError, OverflowError, InvalidInputError) as error:
            raise StorageError(f"the index's settings are damaged: {error!r}") from None

    def meta(self) -> dict[str, Any]:
        """Return the catalogue's entries: the settings and their checksum."""
        settings = self.as_json()
        return {
            "settings": settings,
            "settings_crc": zlib.crc32(json.dumps(settings, sort_keys=True).encode()),
        }


def _checked(shape: Shape) -> Shape:
    """Return a shape whose numbers are within their limits, or raise an error naming the bad one."""
    if shape.precision not in PRECISIONS:
        raise choice_error("precision", shape.precision, PRECISIONS)
    sets = shape.sets
    if sets is not None:
        check_int("the set vectors' dimension", sets.dim, 1, LARGEST_SET_DIM)
        codec.row_bytes(sets.dim, check_int("set_bits", sets.bits, 1, 32))
        if not (isinstance(sets.name, str) and isinstance(sets.fingerprint, str)):
            raise InvalidInputError(f"{sets.name!r} and {sets.fingerprint!r} are no name and fingerprint")
    if shape.bytes_per_item:
        check_int("bytes_per_item", shape.bytes_per_item, *BUDGETS)
    dim = check_int("dim", shape.dim, 1, MAX_CODED_DIM if shape.bytes_per_item else MAX_DIM)
    return replace(shape, dim=dim)


def _as_logistic(value: tuple[float, float] | Logistic) -> Logistic:
    """Return a `Logistic` from itself or from a pair (w, b)."""
    if isinstance(value, Logistic):
        return value
    try:
        w, b = (float(v) for v in value)
    except (TypeError, ValueError):
        raise InvalidInputError(f"logistic must be a pair (w, b), not {value!r}") from None
    return Logistic(w, b)


def spec_of(head: Aggregator) -> SetSpec:
    """Return what an index notes of the maker of its set vectors."""
    return SetSpec(head.name, head.dim, head.bits, getattr(head, "fingerprint", ""))


def head_named(name: str, dim: int, bits: int) -> Aggregator | None:
    """Return the aggregator of that name: the mean, none, or a head shipped or at a path."""
    if name == "none":
        return None
    if name == "mean":
        return Mean(dim, bits=bits)
    from setnet.heads import SetNet  # reads a file; most searches never need it

    head: Aggregator = SetNet.load(name)
    return head
