"""Writes the data set: photos, labels, descriptors, split, queries, distractors, statistics, data card."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import IO, Any

import numpy as np

from setnet.collect.annotation.labelling import classifier_of, photos_with_faces
from setnet.collect.names.portraits import gallery
from setnet.collect.result import collected_set as files
from setnet.collect.result.data_card import data_card
from setnet.collect.result.distractors import alike_sample, candidates
from setnet.collect.result.final_labels import final_rows
from setnet.collect.result.identity_split import SPLITS, split_of, split_people
from setnet.collect.result.paper_statistics import SetStatistics
from setnet.collect.result.photo_folder import PhotoFolder
from setnet.collect.result.together_queries import together_queries
from setnet.collect.run.manifest import Row
from setnet.collect.run.packed import unpacked
from setnet.collect.run.run_folder import CollectRun
from setnet.durable import storage_errors
from setnet.errors import InvalidInputError
from setnet.library import write_descriptor_file
from setnet.system import sync_folder


@dataclass(frozen=True, slots=True)
class ResultPlan:
    """Where the data set goes, what becomes of unanswered faces, and whether photos are copied."""

    out: Path
    unanswered: str = "refuse"
    copy: bool = False


@dataclass
class _Counts:
    """What is counted while photos are written."""

    by_split: dict[str, SetStatistics] = field(default_factory=dict)
    faces: int = 0
    sizes: list[int] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)

    def all(self) -> SetStatistics:
        """Return the counts of the data set without distractors."""
        total = SetStatistics()
        for split in SPLITS:
            part = self.by_split.get(split, SetStatistics())
            total.photos += part.photos
            total.faces += part.faces
            total.known_faces += part.known_faces
            total.faces_per_photo += part.faces_per_photo
            total.people_per_photo += part.people_per_photo
            total.people |= part.people
        return total


def result_rows(run: CollectRun, plan: ResultPlan) -> Iterator[Row]:
    """Write the data set and yield a row per photo: its split, or why it is not in.

    Everything is written to ``OUT.part``, which becomes OUT at the end.
    """
    if plan.out.exists() and any(plan.out.iterdir()):
        raise InvalidInputError(f"{plan.out} has files in it: choose a new folder for the data set")
    part = plan.out.with_name(f"{plan.out.name}.part")
    splits = _people_split(run, plan)
    with storage_errors(part, "cannot write the data set: "):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        counts = _Counts()
        folder = PhotoFolder(part / files.PHOTOS, run.settings.photos, plan.copy)
        with (part / files.ROWS).open("w") as rows, (part / files.DESCRIPTORS).open("wb") as raw:
            yield from _photos(run, plan, splits, folder, counts, rows, raw)
            yield from _distractors(run, part, plan, counts, rows, raw)
            for file in (rows, raw):
                file.flush()
                os.fsync(file.fileno())
        _write_heads(run, part, splits, counts)
        if plan.out.is_dir():
            plan.out.rmdir()
        os.replace(part, plan.out)
        sync_folder(plan.out.parent)


def _people_split(run: CollectRun, plan: ResultPlan) -> dict[str, str]:
    """Return the split of everybody who is in a photo that is left."""
    together: Counter[tuple[str, str]] = Counter()
    photos: Counter[str] = Counter()
    for row in final_rows(run, plan.unanswered):
        if row["kept"]:
            names = sorted({face["name"] for face in row["faces"] if face["name"]})
            photos.update(names)
            together.update(combinations(names, 2))
    if not photos:
        raise InvalidInputError(
            "no photo with a person of the list is left: `setnet collect status` says why photos were dropped"
        )
    return split_people(sorted(photos), together, run.settings.split, run.settings.seed)


def _photos(
    run: CollectRun,
    plan: ResultPlan,
    splits: dict[str, str],
    folder: PhotoFolder,
    counts: _Counts,
    rows: IO[str],
    raw: IO[bytes],
) -> Iterator[Row]:
    number = {name: i for i, name in enumerate(sorted(splits))}
    labels = final_rows(run, plan.unanswered)
    for found, row in zip(photos_with_faces(run), labels, strict=True):
        about = {"photo": row["photo"], "kept": False}
        names = [face["name"] for face in row["faces"]]
        people = {name for name in names if name}
        if not row["kept"]:
            yield about | {"reason": row["reason"], "detail": row.get("detail", "")}
            continue
        if not people:
            yield about | {"reason": "nobody of the list in it"}
            continue
        split = split_of(people, splits)
        if split is None:
            yield about | {"reason": "people of several splits", "detail": ", ".join(sorted(people))}
            continue
        made = {"photo": folder.add(row["photo"]), "split": split}
        made |= {name: row[name] for name in ("width", "height", "text", "query")}
        _write(made, found, row["faces"], counts, rows, raw)
        counts.by_split.setdefault(split, SetStatistics()).add(names)
        if split == "test":
            counts.sizes.append(len(names))
            counts.owners += [number[name] if name else -1 for name in names]
        yield about | {"kept": True, "split": split}


def _distractors(
    run: CollectRun, part: Path, plan: ResultPlan, counts: _Counts, rows: IO[str], raw: IO[bytes]
) -> Iterator[Row]:
    if not run.settings.distractors:
        return
    classifier, settings = classifier_of(run), run.settings
    wanted = counts.all().faces_per_photo
    chosen = alike_sample(candidates(run, classifier), wanted, settings.distractor_photos, settings.seed)
    folder = PhotoFolder(part / files.PHOTOS / "distractors", settings.distractors, plan.copy)
    found = run.manifest("distractors").kept()
    for each, row in zip(candidates(run, classifier), found, strict=True):
        about = {"photo": each.photo, "kept": each.photo in chosen}
        if each.reason is not None:
            yield about | {"reason": each.reason, "detail": each.detail}
            continue
        if each.photo not in chosen:
            yield about | {"reason": "distractor beyond the distribution"}
            continue
        place = os.path.join("distractors", folder.add(each.photo))
        made = {"photo": place, "split": files.DISTRACTOR, "width": row["width"], "height": row["height"]}
        _write(made | {"text": "", "query": []}, row, [{}] * each.faces, counts, rows, raw)
        counts.by_split.setdefault(files.DISTRACTOR, SetStatistics()).add([None] * each.faces)
        yield about | {"split": files.DISTRACTOR}


def _write(
    made: Row, found: Row, labels: list[dict[str, Any]], counts: _Counts, rows: IO[str], raw: IO[bytes]
) -> None:
    """Write the row of a photo, and the descriptors of its faces."""
    faces = [
        {
            "box": face["box"],
            "landmarks": face["landmarks"],
            "name": label.get("name"),
            "by": label.get("by", "folder"),
        }
        for face, label in zip(found["faces"], labels, strict=True)
    ]
    rows.write(json.dumps(made | {"first": counts.faces, "faces": faces}) + "\n")
    for face in found["faces"]:
        raw.write(unpacked(face["descriptor"]).astype("<f4").tobytes())
    counts.faces += len(faces)


def _write_heads(run: CollectRun, part: Path, splits: dict[str, str], counts: _Counts) -> None:
    """Write what is not per photo."""
    names = sorted(splits)
    owner = np.array(counts.owners, dtype=np.int64)
    people = gallery(run)
    rng = np.random.default_rng((run.settings.seed, 1))
    groups = together_queries(np.array(counts.sizes, np.int64), owner, owner >= 0, *run.settings.queries, rng)
    queries = {
        word: [[names[i] for i in group.tolist()] for group in groups if len(group) == size]
        for word, size in (("two", 2), ("three", 3))
    }
    shown = [name for name in people if name in splits]
    head = {
        "format": files.FORMAT,
        "descriptor": run.settings.descriptor,
        "dim": next(iter(people.values())).shape[1],
        "faces": counts.faces,
        "splits": {split: [name for name in names if splits[name] == split] for split in SPLITS},
        "settings": run.settings.to_dict(),
    }
    statistics = {"all": counts.all().to_dict()}
    statistics |= {split: found.to_dict() for split, found in counts.by_split.items()}
    statistics["queries"] = {word: len(found) for word, found in queries.items()}
    write_descriptor_file(
        part / files.PORTRAITS,
        np.concatenate([people[name] for name in shown]),
        [name for name in shown for _ in people[name]],
    )
    for name, value in ((files.QUERIES, queries), (files.STATISTICS, statistics), (files.HEAD, head)):
        (part / name).write_text(json.dumps(value, indent=1), encoding="utf-8")
    (part / files.CARD).write_text(data_card(run, head, statistics), encoding="utf-8")
