"""Video: limits of shots, people in shots and two-person queries, on composed footage with known truth."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from setnet.errors import InvalidInputError, PhotoError
from setnet.evaluate.data.group_photos import lfw_pictures
from setnet.evaluate.experiments.running import OnProgress, running
from setnet.evaluate.footage.composition import MOTIONS, Clip, FootageShot, plan_footage, write_clip
from setnet.evaluate.measures import ndcg
from setnet.evaluate.report.record import Record, Row, Run
from setnet.library import Conditions, Library, LibraryPhoto, QueryPerson

LIMITS, PEOPLE = "limits of shots", "people in shots"
_NEAR = 0.5  # seconds from a true limit, or from the transition around it
_MODES = ("exact", "set")


def video(
    lfw: Path,
    work: Path,
    *,
    shots: int = 500,
    queries: int = 100,
    seed: int = 0,
    json: Path | None = None,
    progress: OnProgress | None = None,
) -> Record:
    """Measure what is found in footage composed of LFW pictures of test-half people.

    Parameters
    ----------
    lfw
        LFW's folder of identities.
    work
        Folder of the clips and their library; made, or used again.
    shots
        How many shots to compose.
    queries, seed, json, progress
        As of `stress`.
    """
    settings = {"shots": shots, "queries": queries, "seed": seed}
    with running("video", settings, json, progress, len(_MODES) + 2) as run:
        pictures = {name: files for name, files in lfw_pictures(lfw).items() if len(files) > 1}
        # The first picture of each person is for queries alone.
        clips = plan_footage({name: files[1:] for name, files in pictures.items()}, shots, seed)
        run.say("composing clips")
        (work / "clips").mkdir(parents=True, exist_ok=True)
        for number, clip in enumerate(clips):
            if not (work / "clips" / clip.name).is_file():
                part = work / f"{clip.name}.part.mp4"
                write_clip(lfw, clip, part, 10_000 * seed + number)
                os.replace(part, work / "clips" / clip.name)
        seconds = sum(clip.shots[-1].stop for clip in clips)
        run.note(world=f"{len(clips)} clips of {seconds / 60:.1f} minutes composed of LFW pictures")
        run.say("indexing clips")
        started = time.monotonic()
        with Library.open_or_create(work / "library") as library:
            if library.index([work / "clips"]).added:
                run.note(indexing_seconds=round(time.monotonic() - started, 1))
            found = {
                clip.name: library.catalog.shots_of(os.fsencode((work / "clips" / clip.name).absolute()))
                for clip in clips
            }
            _add_found(run, clips, found)
            _add_queries(run, library, clips, found, {n: lfw / f[0] for n, f in pictures.items()}, queries)
    return run.record()


def _add_found(run: Run, clips: Sequence[Clip], found: Mapping[str, Sequence[LibraryPhoto]]) -> None:
    limits = [_limits(clip, found[clip.name]) for clip in clips]
    run.add(Row(LIMITS, _rates(np.sum(limits, axis=0))))
    by_motion = {motion: np.zeros(3) for motion in MOTIONS}
    for clip in clips:
        for shot, right, wrong in _people(clip, found[clip.name]):
            by_motion[shot.motion] += (right, wrong, len(shot.actors) - right)
    run.add(Row(PEOPLE, _rates(sum(by_motion.values()))))
    for motion, counts in by_motion.items():
        if counts.any():
            run.add(Row(f"{PEOPLE}: {motion}", _rates(counts)))


def _rates(counts: object) -> dict[str, list[float]]:
    """Return precision, recall and F1, in percent, of (right, wrong, missed)."""
    right, wrong, missed = np.asarray(counts, np.float64)
    precision, recall = right / max(right + wrong, 1e-9), right / max(right + missed, 1e-9)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    return {"precision": [100 * precision], "recall": [100 * recall], "f1": [100 * f1]}


def _limits(clip: Clip, found: Sequence[LibraryPhoto]) -> tuple[int, int, int]:
    """Return how many limits between shots are right, wrong and missed."""
    true = [(shot.stop - shot.mixed, shot.stop) for shot in clip.shots[:-1]]
    guesses = [shot.start or 0.0 for shot in found[1:]]
    right = 0
    for begin, end in true:
        near = [guess for guess in guesses if begin - _NEAR <= guess <= end + _NEAR]
        if near:
            guesses.remove(near[0])
            right += 1
    return right, len(guesses), len(true) - right


def _people(clip: Clip, found: Sequence[LibraryPhoto]) -> list[tuple[FootageShot, int, int]]:
    """Return for each true shot how many of its people were found, and how many faces are wrong."""
    results = []
    for shot in clip.shots:
        seen: list[str] = []
        wrong = 0
        for other in found:
            middle = ((other.start or 0.0) + (other.stop or 0.0)) / 2
            if shot.start <= middle < shot.stop:
                names = [_actor_at(shot, face.box, face.at or middle) for face in other.faces]
                seen += [name for name in names if name is not None]
                wrong += names.count(None) + len(names) - names.count(None) - len({*names} - {None})
        results.append((shot, len(set(seen)), wrong))
    return results


def _actor_at(shot: FootageShot, box: tuple[float, float, float, float], time: float) -> str | None:
    for actor in shot.actors:
        x, y, _ = shot.place(actor, time)
        if box[0] <= x <= box[2] and box[1] <= y <= box[3]:
            return actor.person
    return None


def _add_queries(
    run: Run,
    library: Library,
    clips: Sequence[Clip],
    found: Mapping[str, Sequence[LibraryPhoto]],
    portraits: Mapping[str, Path],
    count: int,
) -> None:
    inside: dict[str, set[str]] = {}
    for clip in clips:
        for shot in clip.shots:
            for other in found[clip.name]:
                middle = ((other.start or 0.0) + (other.stop or 0.0)) / 2
                if shot.start <= middle < shot.stop:
                    inside[other.id] = {actor.person for actor in shot.actors}
    pairs = sorted({tuple(sorted(who)[:2]) for who in inside.values() if len(who) >= 2})
    rng = np.random.default_rng(9)
    chosen = [pairs[i] for i in rng.permutation(len(pairs))[:count]]
    people = _query_people(library, {name for pair in chosen for name in pair}, portraits)
    chosen = [pair for pair in chosen if all(name in people for name in pair)]
    run.note(queries=len(chosen), shots_found=len(inside))
    for mode in _MODES:
        run.say(mode)
        values = []
        for pair in chosen:
            hits = library.find(
                [people[name] for name in pair], k=30, mode=mode, conditions=Conditions(kind="video")
            ).hits
            worth = {photo: len(who & set(pair)) for photo, who in inside.items() if who & set(pair)}
            values.append(float(ndcg([worth.get(h.photo.id, 0) for h in hits] or [0], [*worth.values()], 10)))
        run.add(Row(f"two people, {mode}", {"ndcg10": values}))


def _query_people(library: Library, names: set[str], portraits: Mapping[str, Path]) -> dict[str, QueryPerson]:
    found = {}
    for name in sorted(names):
        try:
            person = library.person(str(portraits[name]))
            found[name] = QueryPerson(name, person.descriptors, person.picture)
        except (InvalidInputError, PhotoError):  # no face found in it
            continue
    return found
