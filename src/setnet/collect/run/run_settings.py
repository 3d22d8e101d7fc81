"""Settings of a run: where the photos and portraits are, and every limit and threshold by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from setnet.collect.annotation.rules import AnnotationRules
from setnet.errors import InvalidInputError

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class CollectSettings:
    """Settings of a run.

    Attributes
    ----------
    portraits
        Folder with a folder of portraits for each person, which is called as the person is.
    photos
        Folders of the archive.
    names
        File with the list of names; by default the names are those of the folders of portraits.
    exclude
        Folders of another collection: what is in them too, a copy or nearly one, is dropped.
    distractors
        Folders of photos of other people.
    encoding
        Of the caption files.
    answers_per_search, answers_per_pair
        How many photos are looked at of each search for companions, and of each search for a pair.
    names_needed
        How many of a pair's two names must be in a photo's text.
    least_faces
        Photos with fewer faces are dropped.
    detector, descriptor, min_face
        As of `setnet index`.
    rules
        Thresholds by which a face is labelled.
    classifier
        File of a classifier of one's own; by default one is made from the portraits.
    strangers
        Share of faces that are of nobody in the list. By default what follows from the paper's tables 1
        and 2: of 546,000 faces, 319,000 are celebrities'.
    split
        Shares of people for training, validation and test.
    queries
        How many test queries of two people, and of three.
    distractor_photos
        How many distractor photos at most; None takes as many as fit.
    seed
        Everything random follows from it.
    """

    portraits: str
    photos: tuple[str, ...]
    names: str | None = None
    exclude: tuple[str, ...] = ()
    distractors: tuple[str, ...] = ()
    encoding: str = "utf-8"
    answers_per_search: int = 100
    answers_per_pair: int = 100
    names_needed: int = 2
    least_faces: int = 2
    detector: str = "mtcnn"
    descriptor: str = "sface"
    min_face: float = 40
    rules: AnnotationRules = field(default_factory=AnnotationRules)
    classifier: str | None = None
    strangers: float = 0.42
    split: tuple[float, float, float] = (0.5, 0.1, 0.4)
    queries: tuple[int, int] = (500, 500)
    distractor_photos: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.photos:
            raise InvalidInputError("no folder of photos: give at least one with --photos DIR")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise InvalidInputError(
                f"unknown encoding {self.encoding!r}: give one that Python knows, such as utf-8 or latin-1"
            ) from None
        for name, low, high in (
            ("answers_per_search", 1, 10_000),
            ("answers_per_pair", 1, 100_000),
            ("names_needed", 1, 2),
            ("least_faces", 1, 100),
            ("strangers", 0.01, 0.99),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise InvalidInputError(f"{name} must be a number from {low} to {high}, not {value!r}")
        if len(self.split) != 3 or min(self.split) < 0 or not math.isclose(sum(self.split), 1.0):
            raise InvalidInputError(
                f"split {self.split}: three shares that add up to 1 are expected, as in 0.5,0.1,0.4"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CollectSettings:
        """Return the settings in a dict; unknown names are refused."""
        known = {each.name for each in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise InvalidInputError(
                f"unknown setting {', '.join(map(repr, unknown))}: valid are {', '.join(sorted(known))}"
            )
        try:
            given: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
            if "rules" in given:
                given["rules"] = AnnotationRules(**given["rules"])
            return cls(**given)
        except TypeError as error:
            raise InvalidInputError(f"settings of a run: {error}") from error

    def changed(self, **changes: Any) -> CollectSettings:
        """Return the settings with those that are not None put in place."""
        given = {name: value for name, value in changes.items() if value is not None}
        rule_names = {each.name for each in fields(AnnotationRules)}
        rules = replace(self.rules, **{name: given.pop(name) for name in rule_names & set(given)})
        return replace(self, rules=rules, **given)
