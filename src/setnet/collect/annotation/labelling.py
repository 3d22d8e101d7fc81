"""Labels by rule: every face of every photo accepted, unknown, or left to a person; some photos dropped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from setnet.collect.annotation.classifier import FaceClassifier
from setnet.collect.annotation.portrait_trials import portrait_classifier
from setnet.collect.annotation.rules import Outcome, without_repeats
from setnet.collect.names.portraits import gallery
from setnet.collect.run.manifest import Row
from setnet.collect.run.packed import unpacked
from setnet.collect.run.run_folder import CollectRun
from setnet.errors import InvalidInputError


def classifier_of(run: CollectRun) -> FaceClassifier:
    """Return the classifier that a run labels with: the user's own, or one made from the portraits."""
    people = gallery(run)
    if not people:
        raise InvalidInputError(
            "no portrait of anybody can be used: `setnet collect status RUN` says why each was dropped"
        )
    dim = next(iter(people.values())).shape[1]
    if run.settings.classifier is None:
        return portrait_classifier(people, run.settings.strangers)
    own = FaceClassifier.read(Path(run.settings.classifier))
    if own.weights.shape[1] != dim:
        raise InvalidInputError(
            f"{run.settings.classifier}: for descriptors of {own.weights.shape[1]} numbers; "
            f"{run.settings.descriptor} has {dim}"
        )
    return own


def photos_with_faces(run: CollectRun) -> Iterator[Row]:
    """Yield the rows of faces of the photos left after near-duplicates were dropped."""
    unique = (row["photo"] for row in run.manifest("duplicates").kept())
    wanted = next(unique, None)
    for row in run.manifest("faces").kept():  # both are in the same order
        if row["photo"] == wanted:
            yield row
            wanted = next(unique, None)


def label_rows(run: CollectRun, classifier: FaceClassifier | None = None) -> Iterator[Row]:
    """Yield a row per photo: its faces with their five best names and what the rules say of each."""
    classifier = classifier or classifier_of(run)
    rules = run.settings.rules
    for row in photos_with_faces(run):
        descriptors = np.stack([unpacked(face["descriptor"]) for face in row["faces"]])
        ranked = classifier.ranked(descriptors, rules.best)
        decisions = without_repeats([rules.decide(each, row["query"]) for each in ranked], ranked)
        faces = [
            {
                "box": face["box"],
                "best": [[each.name, round(each.score, 4)] for each in best],
                "outcome": str(decision.outcome),
                "name": decision.name,
                "rule": decision.rule,
            }
            for face, best, decision in zip(row["faces"], ranked, decisions, strict=True)
        ]
        made = {name: row[name] for name in ("photo", "width", "height", "query", "text")}
        made |= {"faces": faces, "kept": True}
        middling = next((i for i, d in enumerate(decisions) if d.outcome is Outcome.DROP_PHOTO), None)
        if middling is not None:
            best = ranked[middling][0]
            made |= {
                "kept": False,
                "reason": "middle score",
                "detail": f"face {middling + 1} may be {best.name} ({best.score:.2f})",
            }
        yield made
