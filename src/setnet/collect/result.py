"""Writes the data set: photos, labels, descriptors, split, queries, distractors, statistics."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import IO, Any

import numpy as np

from setnet.collect import dataset as files
from setnet.collect.annotation import DROP, Answer, read_answers
from setnet.collect.classifier import FaceClassifier, photos_with_faces
from setnet.collect.dataset import DISTRACTOR, SPLITS, together_queries
from setnet.collect.faces import gallery
from setnet.collect.rules import Outcome
from setnet.collect.run import CollectRun, Row, descriptors_in
from setnet.durable import storage_errors
from setnet.errors import InvalidInputError
from setnet.library import write_descriptor_file
from setnet.system import sync_folder

REFUSE, AS_UNKNOWN, DROP_PHOTO = UNANSWERED = "refuse", "unknown", "drop"
QUERIES = 500, 500  # of two test people, and of three
_Names = list[str | None]  # of the faces of a photo; None is an unknown person
_FACE_BINS, _PEOPLE_BINS = (2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6)  # the last one is "more than 5"


def final_rows(run: CollectRun, unanswered: str = AS_UNKNOWN) -> Iterator[Row]:
    """Yield the rows of labels with the names that count in ``name``, and ``by`` whom: a rule or a person.

    Faces that nobody answered about are ``unknown`` people as in the paper, or ``drop`` their photos.
    """
    answers = dict(read_answers(run))  # of two about one face the later counts
    for row in run.manifest("labels").rows():
        for number, face in enumerate(row["faces"] if row["kept"] else (), 1):
            reason = _settle(face, answers.get((row["photo"], number, tuple(face["box"]))), unanswered)
            if reason and row["kept"]:
                row |= {"kept": False, "reason": reason, "detail": f"face {number}"}
        yield row


def _settle(face: dict[str, Any], given: Answer | None, unanswered: str) -> str | None:
    """Put the name that counts into a face; return why its photo is dropped, if it is."""
    face["by"] = "rule"
    if face["outcome"] != Outcome.ASK:
        return None
    if given is not None:
        face |= {"name": given.name, "by": "person"}
        return "dropped by a person" if given.kind == DROP else None
    face |= {"name": None, "by": "nobody"}
    return "unanswered" if unanswered == DROP_PHOTO else None


def split_people(
    names: Sequence[str], together: Mapping[tuple[str, str], int], shares: Sequence[float], seed: int = 0
) -> dict[str, str]:
    """Return the split of each person: training, validation and test people never overlap.

    A photo with people of two splits can be in neither, so people who are often together go to the same one:
    test and validation grow, from a random person on, by whoever is most often with those already in.
    `together` counts the photos of two people, and `shares` are of training, validation and test.

    Examples
    --------
    >>> split_people(["a", "b", "c", "d"], {("a", "b"): 3, ("c", "d"): 1}, (0.5, 0, 0.5), seed=1)
    {'a': 'test', 'b': 'test', 'c': 'train', 'd': 'train'}
    """
    ties: dict[str, Counter[str]] = defaultdict(Counter)
    for (first, second), photos in together.items():
        ties[first][second] += photos
        ties[second][first] += photos
    rng = np.random.default_rng(seed)
    fresh = [sorted(names)[i] for i in rng.permutation(len(names)).tolist()]
    sizes = {split: round(share * len(names)) for split, share in zip(SPLITS, shares, strict=True)}
    chosen: dict[str, str] = {}
    for split in ("test", "validation"):
        strength: Counter[str] = Counter()  # in how many photos somebody is with people of the split
        for _ in range(min(sizes[split], len(names) - len(chosen))):
            if strength:
                name = min(strength, key=lambda each: (-strength[each], each))
            else:
                name = next(each for each in fresh if each not in chosen)
            chosen[name] = split
            strength += Counter({other: n for other, n in ties[name].items() if other not in chosen})
            del strength[name]
    return {name: chosen.get(name, "train" if sizes["train"] or not chosen else "test") for name in names}


def count_photos(photos: Sequence[_Names]) -> dict[str, Any]:
    """Return counts of photos, faces and people, and the distributions of the paper's tables 1 and 2."""
    known = [{name for name in names if name is not None} for names in photos]
    faces = sum(map(len, photos))
    of_faces, of_people = _count_faces(photos), Counter(min(len(own), _PEOPLE_BINS[-1]) for own in known)
    return {
        "photos": len(photos),
        "faces": faces,
        "known_faces": sum(name is not None for names in photos for name in names),
        "people": len(set().union(*known)),
        "mean_faces_per_photo": round(faces / len(photos), 2) if photos else 0.0,
        "faces_per_photo": {_label(n): of_faces[n] for n in _FACE_BINS},
        "people_per_photo": {_label(n): of_people[n] for n in _PEOPLE_BINS},
    }


def _count_faces(photos: Sequence[_Names]) -> Counter[int]:
    return Counter(min(len(names), _FACE_BINS[-1]) for names in photos)


def _label(number: int) -> str:
    return f">{number - 1}" if number == _FACE_BINS[-1] else str(number)


@dataclass
class _Writing:
    """A data set being written: the open files, and the names of the faces of each split's photos."""

    part: Path
    copy: bool
    rows: IO[str]
    raw: IO[bytes]
    photos: dict[str, list[_Names]] = field(default_factory=lambda: defaultdict(list))
    faces: int = 0

    @property
    def whole(self) -> list[_Names]:
        """The photos that are no distractors."""
        return [names for split, own in self.photos.items() if split != DISTRACTOR for names in own]

    def add(self, photo: str, place: str, about: Row, found: Row, labels: Sequence[Row]) -> None:
        """Put a photo into the folder, and write its row and the descriptors of its faces."""
        target = self.part / files.PHOTOS / place
        target.parent.mkdir(parents=True, exist_ok=True)
        self._place(photo, target)
        names = [label["name"] for label in labels]
        faces = [
            {"box": face["box"], "landmarks": face["landmarks"], "name": label["name"], "by": label["by"]}
            for face, label in zip(found["faces"], labels, strict=True)
        ]
        self.rows.write(json.dumps({"photo": place} | about | {"first": self.faces, "faces": faces}) + "\n")
        self.raw.write(descriptors_in(found).astype("<f4").tobytes())
        self.faces += len(faces)
        self.photos[about["split"]].append(names)

    def _place(self, photo: str, target: Path) -> None:
        """Link a photo, or copy it where that cannot be: another file system, or one without links."""
        if not self.copy:
            try:
                os.link(os.path.realpath(photo), target)
                return
            except FileExistsError:
                return
            except OSError:
                pass
        shutil.copyfile(photo, target)


def result_rows(run: CollectRun, out: Path, unanswered: str, copy: bool) -> Iterator[Row]:
    """Write the data set and yield a row per photo: its split, or why it is not in.

    Everything is written to ``OUT.part``, which becomes OUT at the end.
    """
    if out.exists() and any(out.iterdir()):
        raise InvalidInputError(f"{out} has files in it: choose a new folder for the data set")
    part = out.with_name(f"{out.name}.part")
    splits = _split_run(run, unanswered)
    with storage_errors(part, "cannot write the data set: "):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        with (part / files.ROWS).open("w") as rows, (part / files.DESCRIPTORS).open("wb") as raw:
            writing = _Writing(part, copy, rows, raw)
            yield from _write_photos(run, unanswered, splits, writing)
            if run.settings.distractors:
                yield from _write_distractors(run, writing)
            for file in (rows, raw):
                file.flush()
                os.fsync(file.fileno())
        _write_heads(run, splits, writing)
        if out.is_dir():
            out.rmdir()
        os.replace(part, out)
        sync_folder(out.parent)


def _split_run(run: CollectRun, unanswered: str) -> dict[str, str]:
    """Return the split of everybody who is in a photo that is left."""
    together: Counter[tuple[str, str]] = Counter()
    people: set[str] = set()
    for row in final_rows(run, unanswered):
        if row["kept"]:
            names = sorted({face["name"] for face in row["faces"] if face["name"]})
            people.update(names)
            together.update(combinations(names, 2))
    if not people:
        raise InvalidInputError(
            "no photo with a person of the list is left: `setnet collect status` says why photos were dropped"
        )
    return split_people(sorted(people), together, run.settings.split, run.settings.seed)


def _write_photos(
    run: CollectRun, unanswered: str, splits: Mapping[str, str], writing: _Writing
) -> Iterator[Row]:
    roots = _folder_names(run.settings.photos)
    for found, row in zip(photos_with_faces(run), final_rows(run, unanswered), strict=True):
        dropped = {"photo": row["photo"], "kept": False}
        people = {face["name"] for face in row["faces"] if face["name"]}
        of = {splits[name] for name in people} if row["kept"] else set()
        if not row["kept"]:
            yield dropped | {"reason": row["reason"], "detail": row.get("detail", "")}
        elif not people:
            yield dropped | {"reason": "nobody of the list in it"}
        elif len(of) > 1:
            yield dropped | {"reason": "people of several splits", "detail": ", ".join(sorted(people))}
        else:
            about = {"split": of.pop()} | {key: row[key] for key in ("width", "height", "text", "query")}
            writing.add(row["photo"], _place_below(row["photo"], roots), about, found, row["faces"])
            yield dropped | {"kept": True, "split": about["split"]}


def _write_distractors(run: CollectRun, writing: _Writing) -> Iterator[Row]:
    """Add distractors: of nobody in the list, with faces per photo as in the data set (section 5.2)."""
    settings = run.settings
    candidates = list(_distractor_candidates(run))
    free = [(photo, faces) for photo, faces, detail in candidates if not detail]
    chosen = sample_by_faces(free, _count_faces(writing.whole), settings.seed)
    roots = _folder_names(settings.distractors)
    for (photo, faces, detail), row in zip(candidates, run.manifest("distractors").kept_rows(), strict=True):
        about: Row = {"photo": photo, "kept": photo in chosen}
        if detail:
            yield about | {"reason": "may be a person of the list", "detail": detail}
        elif photo not in chosen:
            yield about | {"reason": "distractor beyond the distribution"}
        else:
            made = {"split": DISTRACTOR, "width": row["width"], "height": row["height"]}
            place = os.path.join("distractors", _place_below(photo, roots))
            labels = [{"name": None, "by": "folder"}] * faces
            writing.add(photo, place, made | {"text": "", "query": []}, row, labels)
            yield about | {"split": DISTRACTOR}


def _distractor_candidates(run: CollectRun) -> Iterator[tuple[str, int, str]]:
    """Yield photos with their numbers of faces, and whom of the list a face may be, if anybody."""
    classifier = FaceClassifier.of(run)
    for row in run.manifest("distractors").kept_rows():
        best = max((each[0] for each in classifier.rank(descriptors_in(row), 1)), key=lambda each: each.score)
        is_known = best.score >= run.settings.rules.unknown_below
        yield row["photo"], len(row["faces"]), f"{best.name} ({best.score:.2f})" if is_known else ""


def sample_by_faces(
    photos: Iterable[tuple[str, int]], bins: Mapping[int, int], seed: int = 0
) -> frozenset[str]:
    """Return as many photos as there can be with a given distribution of faces per photo.

    `photos` come with their numbers of faces, and `bins` counts the photos of the data set by that number (6
    is "more than 5"). Numbers of faces of which there is no photo are left out of the comparison.

    Examples
    --------
    >>> chosen = sample_by_faces([(f"{n}-{i}", n) for n in (2, 3) for i in range(10)], {2: 30, 3: 15})
    >>> sorted(Counter(name[0] for name in chosen).items())
    [('2', 10), ('3', 5)]
    """
    by_bin: dict[int, list[str]] = {number: [] for number in _FACE_BINS}
    for photo, faces in photos:
        if faces >= _FACE_BINS[0]:
            by_bin[min(faces, _FACE_BINS[-1])].append(photo)
    usable = {number: bins[number] for number in _FACE_BINS if by_bin[number] and bins.get(number)}
    if not usable:
        return frozenset()
    scale = min(len(by_bin[number]) / count for number, count in usable.items())
    rng = np.random.default_rng(seed)
    chosen: list[str] = []
    for number, count in usable.items():
        order = rng.permutation(len(by_bin[number]))[: int(scale * count + 1e-9)]
        chosen += [by_bin[number][i] for i in order.tolist()]
    return frozenset(chosen)


def _folder_names(roots: Sequence[str]) -> dict[str, str]:
    """Return the folder of the data set for each folder of the archive; with several, each has its own."""
    names = [Path(root).name or "root" for root in roots]
    unique = len(set(names)) == len(names)
    return {
        root: "" if len(roots) == 1 else name if unique else f"{number}-{name}"
        for number, (root, name) in enumerate(zip(roots, names, strict=True))
    }


def _place_below(photo: str, roots: Mapping[str, str]) -> str:
    """Return where a photo goes: under the path that it had in the archive."""
    for root, name in roots.items():
        if photo.startswith(root.rstrip("/") + "/"):
            return os.path.join(name, os.path.relpath(photo, root))
    return os.path.join("elsewhere", photo.lstrip("/"))


def _write_heads(run: CollectRun, splits: Mapping[str, str], writing: _Writing) -> None:
    """Write what is not per photo."""
    names, people, part = sorted(splits), gallery(run), writing.part
    number = {name: i for i, name in enumerate(names)}
    test = writing.photos["test"]
    owner = np.array([number.get(name or "", -1) for names_of in test for name in names_of], np.int64)
    rng = np.random.default_rng((run.settings.seed, 1))
    sizes = np.array([len(names_of) for names_of in test], np.int64)
    groups = together_queries(sizes, owner, owner >= 0, *QUERIES, rng)
    queries = {
        word: [[names[i] for i in group.tolist()] for group in groups if len(group) == size]
        for word, size in (("two", 2), ("three", 3))
    }
    head = {
        "format": files.FORMAT,
        "descriptor": run.settings.descriptor,
        "dim": next(iter(people.values())).shape[1],
        "faces": writing.faces,
        "splits": {split: [name for name in names if splits[name] == split] for split in SPLITS},
        "settings": asdict(run.settings),
    }
    statistics: dict[str, Any] = {"all": count_photos(writing.whole)}
    statistics |= {split: count_photos(found) for split, found in writing.photos.items() if found}
    statistics["queries"] = {word: len(found) for word, found in queries.items()}
    used = [name for name in people if name in splits]
    write_descriptor_file(
        part / files.PORTRAITS,
        np.concatenate([people[name] for name in used]),
        [name for name in used for _ in people[name]],
    )
    for name, value in ((files.QUERIES, queries), (files.STATISTICS, statistics), (files.HEAD, head)):
        (part / name).write_text(json.dumps(value, indent=1), encoding="utf-8")
