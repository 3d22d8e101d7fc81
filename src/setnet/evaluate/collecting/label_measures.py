"""How right collected labels are, by the ground truth of who stands where."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from setnet.collect import Answer, Question
from setnet.evaluate.collecting.composed_archive import CaptionedArchive
from setnet.evaluate.data.group_photos import Placed


@dataclass(frozen=True)
class LabelQuality:
    """Counts of labels.

    Attributes
    ----------
    photos, faces
        What is in the data set.
    named
        Faces with a name.
    right
        Of these, faces whose name is true.
    known
        Faces of people of the list.
    unknown_right
        Faces called unknown that are of nobody in the list.
    """

    photos: int
    faces: int
    named: int
    right: int
    known: int
    unknown_right: int

    def to_dict(self) -> dict[str, float]:
        """Return the measures in percent."""
        unknown = self.faces - self.named
        return {
            "precision": 100 * self.right / max(1, self.named),
            "recall": 100 * self.right / max(1, self.known),
            "unknown": 100 * self.unknown_right / max(1, unknown),
            "accuracy": 100 * (self.right + self.unknown_right) / max(1, self.faces),
        }


def true_name(box: Sequence[float], placed: Iterable[Placed], names: frozenset[str]) -> str | None:
    """Return whose face a box is, as the list has the name; None for strangers and for what is no face."""
    for each in placed:
        if box[0] <= each.x <= box[2] and box[1] <= each.y <= box[3]:
            return each.person.replace("_", " ") if each.person in names else None
    return None


def label_quality(rows: Iterable[Mapping[str, Any]], archive: CaptionedArchive) -> LabelQuality:
    """Compare rows of labels with the ground truth; planted copies, whose faces moved, are left out."""
    counts = dict.fromkeys(("photos", "faces", "named", "right", "known", "unknown_right"), 0)
    for row in rows:
        file = os.path.basename(row["photo"])
        if not row["kept"] or file in archive.copies:
            continue
        counts["photos"] += 1
        for face in row["faces"]:
            truth = true_name(face["box"], archive.placed[file], archive.names)
            counts["faces"] += 1
            counts["known"] += truth is not None
            counts["named"] += face["name"] is not None
            counts["right"] += face["name"] is not None and face["name"] == truth
            counts["unknown_right"] += face["name"] is None and truth is None
    return LabelQuality(**counts)


def true_answer(question: Question, archive: CaptionedArchive) -> Answer:
    """Return what somebody who knows everybody answers by the keys of the page.

    A person of the list who is not among the five names is not to be called unknown: the photo is dropped. So
    is a planted copy, in which nobody knows where people stand.
    """
    file = os.path.basename(question.photo)
    truth = true_name(question.box, archive.placed[file], archive.names)
    if file in archive.copies:
        return Answer("drop photo")
    if truth is None:
        return Answer("unknown")
    return Answer("name", truth) if truth in {each.name for each in question.best} else Answer("drop photo")
