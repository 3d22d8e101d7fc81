"""What finding and describing faces costs per photo, and how many faces and true matches that gives.

    python benchmarks/photos.py [time] [quality] [detectors] [--repeats 7] [--photos 60] [--write FILE.md]

`time` makes photos of openpeople's synthetic people and prints the processor time of each stage, the photos
per second that one process per core makes of it, and the faces found. `quality` composes photos of the people
in LFW's test half (none of whom the detector's settings were chosen on), and puts real press photos together
again; it prints the faces found and the true matches at one false match in ten thousand, with each person's first
picture as the query. `detectors` compares the three detectors: processor time of a whole photo at three sizes, and
faces found in drawings that show none. *before* is the same on all pixels, as setnet once decoded them. Peers take part if they
are installed: face_recognition with dlib-bin. The last line of each photo is the limit: the bare networks.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

from setnet.faces import FaceSettings, StageTimes, extract_faces, load_descriptor, load_detector, open_photo
from setnet.system import usable_cores
from support import photo_worlds
from support.performance_page import machine, write_section

LFW = Path(os.environ.get("SETNET_LFW", Path(__file__).parents[2] / "shared" / "data" / "lfw"))
FALSE_MATCHES = 1e-4
DETECTORS, DRAWINGS = ("mtcnn", "cascade", "yunet"), 36
Floats = npt.NDArray[np.float32]


@dataclass
class Seen:
    """The faces a pipeline found in a photo: boxes, descriptors, and the processor time of each stage."""

    boxes: npt.NDArray[np.float64]
    descriptors: Floats
    times: StageTimes = field(default_factory=StageTimes)


def our_pipeline(settings: FaceSettings, in_full: bool = False) -> Callable[[bytes], Seen]:
    """Return the pipeline of setnet with some settings; `in_full` decodes all pixels, as setnet once did."""

    def pipeline(data: bytes) -> Seen:
        times = StageTimes(clock=time.process_time)
        with times.spent("decoder"):
            photo = open_photo(data) if in_full else None
        faces = extract_faces(photo or data, settings, times=times)
        boxes = np.array([face.box for face in faces], np.float64).reshape(-1, 4)
        return Seen(boxes, np.array([f.descriptor for f in faces], np.float32).reshape(len(faces), -1), times)

    return pipeline


def face_recognition_pipeline(data: bytes) -> Seen:
    """face_recognition at its defaults; HOG on the photo at 1600 pixels, as ours searches it."""
    import io

    import face_recognition

    times = StageTimes(clock=time.process_time)
    with times.spent("decoder"):
        pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    shrink = 1600 / max(pixels.shape[:2])
    with times.spent("detector"):
        searched = cv2.resize(pixels, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
        places = face_recognition.face_locations(searched)
    with times.spent("descriptor"):
        found = np.array(face_recognition.face_encodings(searched, places), np.float32).reshape(-1, 128)
    boxes = np.array([[left, top, right, bottom] for top, right, bottom, left in places], np.float64)
    return Seen(boxes.reshape(-1, 4) / shrink, found, times)


BEFORE, DEFAULT, QUICK = "before: mtcnn, all pixels", "setnet", "setnet --quick"
PIPELINES: dict[str, Callable[[bytes], Seen]] = {
    BEFORE: our_pipeline(FaceSettings(detector="mtcnn"), in_full=True),
    "before: yunet, all pixels": our_pipeline(FaceSettings(detector="yunet"), in_full=True),
    DEFAULT: our_pipeline(FaceSettings()),
    QUICK: our_pipeline(FaceSettings.preset("quick")),
}
PEERS = (
    {"face_recognition": face_recognition_pipeline} if importlib.util.find_spec("face_recognition") else {}
)


def bare_networks(faces: int) -> float:
    """Return the processor seconds of YuNet at 1600 x 1200 and the descriptor of some faces, and nothing else."""
    detector: Any = load_detector("yunet")
    descriptor = load_descriptor("sface")
    image = np.zeros((1, 3, 1216, 1600), np.float32)
    crops = [np.zeros((112, 112, 3), np.uint8)] * faces
    runs = []
    for _ in range(5):
        began = time.process_time()
        detector._session.run(None, {"input": image})
        descriptor.describe(crops)
        runs.append(time.process_time() - began)
    return min(runs)


def photos_to_time() -> Iterator[tuple[str, str]]:
    yield "12 MP JPEG", "4000 3000 JPEG"
    yield "12 MP JPEG, small faces", "4000 3000 JPEG small"
    yield "24 MP JPEG", "6000 4000 JPEG"
    yield "12 MP HEIC", "4000 3000 HEIC"
    yield "24 MP HEIC", "6000 4000 HEIC"


def time_table(repeats: int) -> Iterator[str]:
    yield "| photo | pipeline | decode | detect | cut | describe | processor s | photos/s | faces |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for title, words in photos_to_time():
        width, height, kind, *small = words.split()
        data = photo_worlds.synthetic_group(int(width), int(height), bool(small), kind)
        pipelines = (
            PIPELINES | PEERS if kind == "JPEG" else {name: PIPELINES[name] for name in (BEFORE, DEFAULT)}
        )
        runs: dict[str, list[tuple[float, Seen]]] = {name: [] for name in pipelines}
        for turn in range(repeats + 1):
            for name, pipeline in pipelines.items():
                began = time.process_time()
                seen = pipeline(data)
                if turn:  # the first run loads the models
                    runs[name].append((time.process_time() - began, seen))
        for name, done in runs.items():
            total, seen = min(done, key=lambda run: run[0])
            stages = (getattr(seen.times, s) for s in ("decoder", "detector", "cropping", "descriptor"))
            rate = usable_cores() / total
            cells = " | ".join(f"{seconds:.3f}" for seconds in stages)
            yield f"| {title} | {name} | {cells} | **{total:.3f}** | {rate:.1f} | {len(seen.boxes)} |"
        faces = len(runs[DEFAULT][0][1].boxes)
        limit = bare_networks(faces)
        yield f"| {title} | limit: the bare networks | | | | | {limit:.3f} | {usable_cores() / limit:.1f} | |"


def detectors_table(repeats: int) -> Iterator[str]:
    sizes = {"0.3 MP": (640, 480), "2 MP": (1600, 1200), "12 MP": (4000, 3000)}
    photos = {title: photo_worlds.synthetic_group(*size, False, "JPEG") for title, size in sizes.items()}
    pipelines = {name: our_pipeline(FaceSettings(detector=name)) for name in DETECTORS}
    fastest = dict.fromkeys(((name, title) for name in pipelines for title in photos), float("inf"))
    for turn in range(repeats + 1):
        for name, title in fastest:
            began = time.process_time()
            pipelines[name](photos[title])
            if turn:  # the first run loads the models
                fastest[name, title] = min(fastest[name, title], time.process_time() - began)
    wrong = dict.fromkeys(DETECTORS, 0)
    for drawing in photo_worlds.drawings(DRAWINGS):
        for name in DETECTORS:
            detector = load_detector(name)
            threshold = detector.default_threshold
            found = detector.detect(drawing, min_face=40, threshold=threshold, longest_side=1600)
            sides = (found.boxes[:, 2:] - found.boxes[:, :2]).clip(min=0)
            wrong[name] += int((np.sqrt(sides.prod(axis=1)) >= 40).sum())
    yield f"| detector | {' | '.join(f'{title}, s' for title in photos)} | faces in {DRAWINGS} drawings without any |"
    yield "|---|---|---|---|---|"
    for name in DETECTORS:
        times = " | ".join(f"{fastest[name, title]:.3f}" for title in photos)
        yield f"| {name} | {times} | {wrong[name]} |"


@dataclass
class Tally:
    """What one pipeline made of the people in photos."""

    placed: list[photo_worlds.Placed] = field(default_factory=list)
    descriptors: list[Floats | None] = field(default_factory=list)
    others: int = 0

    def add(self, people: Sequence[photo_worlds.Placed], seen: Seen) -> None:
        taken = set()
        for person in people:
            face = face_at(seen, person.x, person.y)
            taken.add(face)
            self.placed.append(person)
            self.descriptors.append(None if face is None else seen.descriptors[face])
        self.others += len(seen.boxes) - len(taken - {None})


def face_at(seen: Seen, x: float, y: float) -> int | None:
    """Return the face whose box holds a point, the one centred nearest to it."""
    x0, y0, x1, y1 = seen.boxes.T
    inside = np.flatnonzero((x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1))
    away = (x0 + x1 - 2 * x) ** 2 + (y0 + y1 - 2 * y) ** 2
    return int(inside[away[inside].argmin()]) if len(inside) else None


def true_matches(tally: Tally, queries: dict[str, Floats]) -> tuple[npt.NDArray[np.bool_], ...]:
    """Return who was found, who can be matched (by another picture), and who is above the threshold."""
    found = np.array([vector is not None for vector in tally.descriptors])
    dim = len(next(iter(queries.values())))
    vectors = np.array([np.zeros(dim) if v is None else v for v in tally.descriptors])
    names = sorted(queries)
    similarity = vectors @ np.array([queries[name] for name in names]).T
    own = np.array([names.index(p.person) if p.person in queries else -1 for p in tally.placed])
    non_matches = np.ones_like(similarity, bool)
    non_matches[np.flatnonzero(own >= 0), own[own >= 0]] = False
    threshold = np.quantile(similarity[non_matches & found[:, None]], 1 - FALSE_MATCHES)
    probes = (own >= 0) & np.array([not p.picture.endswith("_0001.jpg") for p in tally.placed])
    return found, probes, similarity[np.arange(len(own)), own] > threshold


def examined(job: tuple[str, photo_worlds.TrueImage]) -> Seen:
    return PIPELINES[job[0]](job[1].data)


def quality_table(lfw: Path, half: str, photos: int) -> Iterator[str]:
    kinds = ("plain", "turned", "dark")
    yield f"| photos | pipeline | faces found | below 60 px | 60-100 px | {' | '.join(kinds)} | other faces | true matches |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    people = photo_worlds.lfw_people(lfw, half)
    if not people:
        raise SystemExit(f"no LFW photos in {lfw / 'images'}: give LFW's folder with --lfw")
    worlds: dict[str, Iterator[photo_worlds.TrueImage]] = {
        "composed, 12 MP": photo_worlds.composed_photos(lfw, half, photos),
        "press photos": photo_worlds.press_photos(lfw, half),
    }
    with multiprocessing.get_context("spawn").Pool(usable_cores()) as pool:
        for title, world in worlds.items():
            tallies = {name: Tally() for name in PIPELINES}
            for photo in world:
                jobs = [(name, photo) for name in PIPELINES]
                for name, seen in zip(PIPELINES, pool.map(examined, jobs, chunksize=1), strict=True):
                    tallies[name].add(photo.people, seen)
            who = sorted({p.person for p in tallies[DEFAULT].placed} & set(people))
            pictures = [(lfw / "images" / name / people[name][0]).read_bytes() for name in who]
            for name, tally in tallies.items():
                jobs = [(name, photo_worlds.TrueImage(data, ())) for data in pictures]
                seen = pool.map(examined, jobs, chunksize=16)
                main = {
                    n: s.descriptors[face]
                    for n, s in zip(who, seen, strict=True)
                    if (face := face_at(s, 125, 125)) is not None
                }
                yield quality_row(title, name, tally, main, kinds)


def quality_row(title: str, name: str, tally: Tally, queries: dict[str, Floats], kinds: Sequence[str]) -> str:
    found, probes, matched = true_matches(tally, queries)
    size = np.array([p.size for p in tally.placed])
    kind = np.array([p.kind for p in tally.placed])
    groups = [size < 60, (size >= 60) & (size < 100), *(kind == k for k in kinds)]
    cells = [f"{found[g].sum()} of {g.sum()}" if g.any() else "" for g in groups]
    share = 100 * (matched & found)[probes].mean()
    cells = [f"{found.sum()} of {len(found)}", *cells, str(tally.others), f"{share:.1f} %"]
    return f"| {title} | {name} | {' | '.join(cells)} |"


def printed(lines: Iterator[str]) -> list[str]:
    kept = []
    for line in lines:
        print(line, flush=True)
        kept.append(line)
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="time, quality, detectors; all by default")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--photos", type=int, default=60, help="how many to compose")
    parser.add_argument("--half", default="test", help="of LFW's people; train is for choosing settings")
    parser.add_argument("--lfw", type=Path, default=LFW)
    parser.add_argument("--write", type=Path, help="put the tables into this Markdown file")
    options = parser.parse_args()
    tables = {
        "time": lambda: time_table(options.repeats),
        "detectors": lambda: detectors_table(options.repeats),
        "quality": lambda: quality_table(options.lfw, options.half, options.photos),
    }
    if unknown := set(options.parts) - set(tables):
        parser.error(f"no part {', '.join(sorted(unknown))}: there are {', '.join(tables)}")
    for part in options.parts or tables:
        table = printed(tables[part]())
        if options.write:
            origin = f"Written by `python {' '.join(sys.argv)}` on {machine('onnxruntime')}."
            write_section(options.write, f"photos, {part}", "\n".join([origin, "", *table]))


if __name__ == "__main__":
    main()
