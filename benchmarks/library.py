"""Index LFW as a user would, time a search by names on a library of the paper's size, and group faces.

    python benchmarks/library.py index [--photos DIR] [--workers N] [--json FILE]
    python benchmarks/library.py start [--items 549000] [--json FILE]
    python benchmarks/library.py grouping [--faces N]... [--json FILE] [--write docs/performance.md]
    python benchmarks/library.py together [--items 1000000] [--people 50] [--json FILE]
    python benchmarks/library.py duplicates [--photos DIR] [--items N] [--json FILE]
    python benchmarks/library.py video [--photos DIR] [--ffmpeg FILE] [--clip FILE]... [--json FILE]

`index` prints photos per second, wall time against (detector + descriptor time) / workers as measured in the
same run, peak memory of all processes, and the rate of a second run over the unchanged folder. `start` makes
a library with random descriptors and prints the wall time of `setnet search` by saved names, process start
included, beside `setnet --help` and `python -c "import numpy"`. `grouping` groups faces of virtual people from
nothing, as the first run of `setnet people discover` does, and prints time, peak memory and quality; with
--json, sizes that are in the file already are not measured again. `together` times `setnet people together`
in a library of so many photos with faces of virtual people, of whom the most frequent are saved. `duplicates`
indexes the first photos of a folder and times `setnet duplicates`, and again when its work is kept. `video` prints the processor time that a minute
of video takes: of the clips given, else of a minute composed of photos, which ffmpeg encodes as phones and editors do.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setnet.library import IndexReport

# As the command line does, before NumPy is imported: see setnet/cli/app.py.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

GROUPED = (20_000, 80_000, 200_000, 1_500_000)
sys.path.append(str(Path(__file__).parents[1]))  # for `studies`
LFW = Path(__file__).parents[2] / "shared" / "data" / "lfw" / "images"


class PeakMemory(threading.Thread):
    """Samples the proportional memory of this process and all its children (Linux)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.5):
            self.peak = max(self.peak, sum(map(_memory, _family(os.getpid()))))

    def stop(self) -> int:
        self._ended.set()
        self.join()
        return self.peak


def _family(root: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
    family = [root]
    for member in family:
        family += [pid for pid, parent in parents.items() if parent == member]
    return family


def _memory(pid: int) -> int:
    """Return proportional set size: shared pages count once over all processes that share them."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def index(photos: Path, workers: int | None) -> dict[str, Any]:
    from setnet.library import Library

    for file in photos.rglob("*.jpg"):  # everything cached, as the measurement assumes
        file.read_bytes()
    folder = Path(tempfile.mkdtemp(prefix="setnet-bench-"))
    try:
        memory = PeakMemory()
        memory.start()
        load = os.getloadavg()[0]
        with Library.create(folder / "library") as library:
            first = library.index([photos], workers=workers)
            peak = memory.stop()
            second = library.index([photos], workers=workers)
            counts = library.photos.counts()
            size = library.status().bytes
    finally:
        shutil.rmtree(folder)
    return {
        "photos": counts.photos,
        "failed": counts.failed,
        "with_face_percent": round(100 * (1 - counts.without_faces / counts.photos), 3),
        "faces": counts.faces,
        "workers": first.workers,
        "seconds": round(first.seconds, 1),
        "photos_per_second": round(counts.photos / first.seconds, 1),
        "peak_memory_mb": round(peak / 1e6),
        "second_run_seconds": round(second.seconds, 2),
        "second_run_photos_per_second": round(second.scanned / second.seconds),
        "library_mb": round(size / 1e6, 1),
        "load_before": round(load, 1),
        "load_after": round(os.getloadavg()[0], 1),
    }


def video(clips: Sequence[Path], photos: Path, ffmpeg: str | None) -> dict[str, Any]:
    """Index clips one by one in one worker process; to start it and load its models is measured by itself."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "no video.mp4").write_bytes(b"no video")
        _, starting = _indexed(Path(folder) / "no video.mp4", Path(folder))
        found["starting, processor s"] = round(starting, 1)
        for clip in clips or _composed_clips(Path(folder), photos, ffmpeg):
            report, spent = _indexed(clip, Path(folder))
            found[f"{clip.name}, minutes of video"] = round(report.minutes, 2)
            found[f"{clip.name}, shots"] = report.shots
            found[f"{clip.name}, faces"] = report.faces
            minutes = max(report.minutes, 1e-9)
            found[f"{clip.name}, processor s/min"] = round((spent - starting) / minutes, 1)
    return found | {"load": round(os.getloadavg()[0], 1)}


def duplicates(photos: Path, items: int) -> dict[str, Any]:
    """Look for copies among the photos of a library, and a second time."""
    from setnet.library import Library

    files = sorted(photos.rglob("*.jpg"))[:items]
    found: dict[str, Any] = {"photos": len(files)}
    with tempfile.TemporaryDirectory() as folder, Library.create(Path(folder) / "library") as library:
        library.index(files)
        for run in ("first", "second"):
            began, before = time.perf_counter(), _children_cpu() + time.process_time()
            groups = library.photos.duplicates()
            found[f"{run} run, s"] = round(time.perf_counter() - began, 1)
            found[f"{run} run, processor s"] = round(_children_cpu() + time.process_time() - before, 1)
    return found | {"groups": len(groups), "load": round(os.getloadavg()[0], 1)}


def _indexed(clip: Path, folder: Path) -> tuple[IndexReport, float]:
    """Return what an index run over one clip found, and its processor time."""
    from setnet.library import Library

    with Library.create(folder / f"library of {clip.name}") as library:
        before = _children_cpu() + time.process_time()
        report = library.index([clip], workers=1)
        return report, _children_cpu() + time.process_time() - before


def _composed_clips(folder: Path, photos: Path, ffmpeg: str | None) -> list[Path]:
    """Compose a minute of video; ffmpeg makes larger ones of it, with few key pictures and with many."""
    from studies.album import lfw_pictures
    from studies.video import Clip, plan_footage, set_turned, write_clip

    planned = plan_footage(lfw_pictures(photos), 16, seed=1)
    first = planned[0].shots
    later = [
        replace(shot, start=shot.start + first[-1].stop, stop=shot.stop + first[-1].stop)
        for shot in planned[1].shots
    ]
    plain = folder / "MPEG-4 360p.mp4"
    write_clip(photos, Clip(plain.name, (*first, *later)), plain, seed=1)
    if ffmpeg is None:
        return [plain]
    made = [plain]
    for name, size, codec, keys, rate in (
        ("H.264 1080p.mp4", "scale=-2:1080", "libx264", 250, 30),
        ("H.264 1080p key every s.mp4", "scale=-2:1080", "libx264", 30, 30),
        ("H.265 1080p phone turned 60 a s.mp4", "transpose=2,scale=1080:-2", "libx265", 60, 60),
        ("H.265 2160p.mp4", "scale=-2:2160", "libx265", 250, 30),
    ):
        options = ["-vf", f"{size},noise=alls=4:allf=t", "-r", str(rate), "-c:v", codec, "-g", str(keys)]
        options += ["-preset", "veryfast", "-pix_fmt", "yuv420p", str(folder / name)]
        subprocess.run([ffmpeg, "-loglevel", "error", "-i", str(plain), *options], check=True)
        if "turned" in name:
            set_turned(folder / name)
        made.append(folder / name)
    return made


def start(items: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="setnet-bench-"))
    try:
        _fill(folder / "library", items)
        command = [sys.executable, "-m", "setnet"]
        found = subprocess.run(
            [*command, "search", "ann", "ben", "--json", "--library", str(folder / "library")],
            capture_output=True,
            text=True,
            check=False,
        )
        answer = json.loads(found.stdout)
        return {
            "items": answer["searched"],
            "engine_milliseconds": round(answer["seconds"]["search"] * 1000, 1),
            "search_by_names": _times(
                [*command, "search", "ann", "ben", "--library", str(folder / "library")]
            ),
            "search_in_a_folder": _times(
                [*command, "search", "ann", "ben", "--in", "/photos/7", "--library", str(folder / "library")]
            ),
            "help": _times([*command, "--help"]),
            "import_numpy": _times([sys.executable, "-c", "import numpy"]),
            "load": round(os.getloadavg()[0], 1),
        }
    finally:
        shutil.rmtree(folder)


def _times(command: list[str], repeats: int = 7) -> dict[str, float]:
    """Return wall times, and CPU times, which say more on a machine that has other work to do."""
    seconds, cpu = [], []
    for _ in range(repeats):
        began, used = time.perf_counter(), _children_cpu()
        subprocess.run(command, capture_output=True, check=False)
        seconds.append(time.perf_counter() - began)
        cpu.append(_children_cpu() - used)
    return {
        "min_seconds": round(min(seconds), 3),
        "median_seconds": round(sorted(seconds)[repeats // 2], 3),
        "min_cpu_seconds": round(min(cpu), 3),
    }


def _cpu_of(call: Callable[[], object]) -> float:
    used = time.process_time()
    call()
    return round(time.process_time() - used, 3)


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _fill(path: Path, items: int) -> None:
    """Make a library with random unit descriptors and two saved people."""
    import numpy as np

    from setnet.heads import unit
    from setnet.library import Example, Library
    from support.invented_library import BATCH, Vectors, face_counts, fill

    chance = np.random.default_rng(0)

    def batch(size: int) -> list[Vectors]:
        counts = face_counts(chance, size)
        return np.split(unit(chance.standard_normal((counts.sum(), 128), np.float32)), np.cumsum(counts)[:-1])

    fill(path, (batch(min(BATCH, items - at)) for at in range(0, items, BATCH)))
    with Library.open(path) as library:
        for name, photo in zip(("ann", "ben"), library.photos.latest(2, None), strict=True):
            library.people.add(name, [Example(library.photos.descriptors(photo.id)[0])])


def together(items: int, people: int) -> dict[str, Any]:
    """Time who is with whom, and the counts of everybody's photos, all of them and after a change.

    Each person is with others of a circle of ten, the first ones most often.
    """
    import numpy as np

    from setnet.evaluate import LFW_LIKE
    from setnet.library import Example, Library
    from setnet.train import VirtualPeople
    from support.invented_library import BATCH, Vectors, face_counts, fill

    chance = np.random.default_rng(0)
    model = VirtualPeople.load(LFW_LIKE)
    crowd = model.people(chance, 100_000)

    def batch(size: int) -> list[Vectors]:
        counts = face_counts(chance, size)
        circles = np.repeat((people / 10 * chance.random(size) ** 2).astype(np.int64), counts)
        who = 10 * circles + chance.integers(0, 10, len(circles))
        unknown = chance.random(len(who)) < 0.7
        who[unknown] = chance.integers(people, 100_000, unknown.sum())
        return np.split(model.faces(chance, crowd, who), np.cumsum(counts)[:-1])

    folder = Path(tempfile.mkdtemp(prefix="setnet-bench-"))
    try:
        fill(folder / "library", (batch(min(BATCH, items - at)) for at in range(0, items, BATCH)))
        with Library.open(folder / "library") as library:
            for number in range(people):
                faces = model.faces(chance, crowd, np.full(5, number))
                library.people.add(f"P{number:03}", [Example(face) for face in faces])
            sets = len(library.people.together())
            counts = [_cpu_of(library.people.photo_counts)]
            library.people.tag("P000", next(library.photos.all_photos()).id)
            counts.append(_cpu_of(library.people.photo_counts))
        command = [sys.executable, "-m", "setnet", "people", "together", "--library", str(folder / "library")]
        return {
            "photos": items,
            "people": people,
            "sets": sets,
            "people_together": _times(command, 3),
            "photo_counts_cpu": counts[0],
            "photo_counts_after_a_change_cpu": counts[1],
            "load": round(os.getloadavg()[0], 1),
        }
    finally:
        shutil.rmtree(folder)


def grouping(faces: int) -> dict[str, Any]:
    """Group faces of virtual people: half of these have one face, one in s has s or more, up to 1 % of all."""
    import numpy as np

    from setnet.evaluate import LFW_LIKE
    from setnet.library import group_descriptors
    from setnet.train import VirtualPeople
    from studies.grouping import group_quality

    chance = np.random.default_rng((0, faces))
    sizes = np.minimum(1 / (1 - chance.random(faces)), faces // 100).astype(np.int64)
    who = chance.permutation(np.repeat(np.arange(faces), sizes)[:faces])
    model = VirtualPeople.load(LFW_LIKE)
    crowd = model.people(chance, int(who.max()) + 1)
    vectors = np.concatenate(
        [model.faces(chance, crowd, who[at : at + 50_000]) for at in range(0, faces, 50_000)]
    )
    photos = np.repeat(
        np.arange(faces), chance.choice([1, 2, 3, 5, 8], size=faces, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    )
    memory = PeakMemory()
    memory.start()
    load, began, used = os.getloadavg()[0], time.perf_counter(), time.process_time()
    groups = group_descriptors(vectors, photos=photos[:faces])
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    quality = group_quality(groups, who)
    return {
        "faces": faces,
        "people": int(who.max()) + 1,
        "largest": int(np.bincount(who).max()),
        "groups": int(groups.max()) + 1,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "load": round(load, 1),
        "peak_memory_mb": round(memory.stop() / 1e6),
        "precision": round(100 * quality.precision, 2),
        "recall": round(100 * quality.recall, 2),
        "f1": round(100 * quality.f1, 2),
        "found": round(100 * quality.found, 2),
    }


def grouping_table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the measurements as a table in Markdown."""
    lines = [
        "| faces | people | most faces of one | wall s | processor s | load | peak memory | precision | recall | F1 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        measures = " | ".join(f"{row[name]:.2f}" for name in ("precision", "recall", "f1"))
        lines.append(
            f"| {row['faces']:,} | {row['people']:,} | {row['largest']:,} | {row['seconds']:,.0f} | "
            f"{row['cpu_seconds']:,.0f} | {row['load']} | {row['peak_memory_mb']:,} MB | {measures} |"
        )
    return lines


def grow(faces: Sequence[int], kept: Path | None, page: Path | None) -> None:
    """Measure grouping at each size, keep the rows, and put the table into a page."""
    rows = {row["faces"]: row for row in (json.loads(kept.read_text()) if kept and kept.exists() else [])}
    for size in faces:
        if size not in rows:
            rows[size] = grouping(size)
            if kept is not None:
                kept.write_text(json.dumps(list(rows.values()), indent=2), encoding="utf-8")
    table = grouping_table([rows[size] for size in sorted(rows)])
    print("\n".join(table))
    if page is not None:
        from support.performance_page import machine, write_section

        origin = f"Written by `python benchmarks/library.py grouping --write {page}` on {machine('numpy')}."
        write_section(page, "library, grouping", "\n".join([origin, "", *table]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["index", "start", "together", "grouping", "duplicates", "video"])
    parser.add_argument("--photos", type=Path, default=LFW)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--items", type=int, help="photos: 549,000 for `start`, 1,432 for `duplicates`")
    parser.add_argument("--people", type=int, default=50, help="saved people for `together`")
    parser.add_argument("--faces", type=int, action="append", help=f"{GROUPED} by default; may be repeated")
    parser.add_argument("--clip", type=Path, action="append", default=[], help="a video; may be repeated")
    parser.add_argument("--ffmpeg", default=shutil.which("ffmpeg"), help="encodes H.264 and H.265")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path, help="put the table of `grouping` into this Markdown file")
    given = parser.parse_args()
    if given.what == "grouping":
        grow(given.faces or GROUPED, given.json, given.write)
        return
    if given.what in ("index", "duplicates", "video") and not (given.photos.is_dir() or given.clip):
        sys.exit(f"no photos in {given.photos}: name a folder with --photos")
    if given.what == "together":
        result = together(given.items or 1_000_000, given.people)
    elif given.what == "start":
        result = start(given.items or 549_000)
    elif given.what == "duplicates":
        result = duplicates(given.photos, given.items or 1_432)
    elif given.what == "video":
        result = video(given.clip, given.photos, given.ffmpeg)
    else:
        result = index(given.photos, given.workers)
    for name, value in result.items():
        print(f"{name:32} {value}")
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
