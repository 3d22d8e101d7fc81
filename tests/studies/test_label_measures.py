from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from setnet.collect import Question
from setnet.collect.rules import NamedScore
from studies.album import Placed
from studies.collecting import CaptionedArchive, label_quality, true_answer

ARCHIVE = CaptionedArchive(
    Path("portraits"),
    Path("photos"),
    {"a.jpg": (Placed("Ann_Cole", "", 50, 50, 20), Placed("Stranger", "", 150, 50, 20))},
    {},
    frozenset({"Ann_Cole", "Ben_Dole"}),
)
LEFT, RIGHT, NOWHERE = [40, 40, 60, 60], [140, 40, 160, 60], [0, 0, 9, 9]


def face(box: list[int], name: str | None) -> dict[str, Any]:
    return {"box": box, "name": name}


def test_labels_are_compared_with_who_stands_where() -> None:
    rows = [
        {"photo": "/x/a.jpg", "kept": True, "faces": [face(LEFT, "Ann Cole"), face(RIGHT, None)]},
        {"photo": "/x/a.jpg", "kept": True, "faces": [face(LEFT, None), face(RIGHT, "Ben Dole")]},
        {"photo": "/x/a.jpg", "kept": True, "faces": [face(NOWHERE, None)]},
        {"photo": "/x/a.jpg", "kept": False, "faces": [face(LEFT, "Ben Dole")]},
    ]
    found = label_quality(rows, ARCHIVE)
    assert (found.photos, found.faces, found.named, found.right, found.known, found.unknown_right) == (
        3,
        5,
        2,
        1,
        2,
        2,
    )


@pytest.mark.parametrize(
    ("box", "best", "answer"),
    [(LEFT, "Ann Cole", "Ann Cole"), (LEFT, "Ben Dole", "drop photo"), (RIGHT, "Ann Cole", "unknown")],
)
def test_who_knows_everybody_answers_by_the_keys_there_are(box: list[int], best: str, answer: str) -> None:
    asked = Question("/x/a.jpg", 1, tuple(box), (200, 100), "", (), (NamedScore(best, 0.1),), "")
    assert str(true_answer(asked, ARCHIVE)) == answer
