"""Index LFW as a user would and time a search by names on a library of the paper's size.

    python benchmarks/library.py index [--photos DIR] [--workers N] [--json FILE]
    python benchmarks/library.py start [--items 549000] [--json FILE]

`index` prints photos per second, wall time against (detector + descriptor time) / workers as measured in the
same run, peak memory of all processes, and the rate of a second run over the unchanged folder. `start` makes
a library with random descriptors and prints the wall time of `setnet search` by saved names, process start
included, beside `setnet --help` and `python -c "import numpy"`.
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
from pathlib import Path
from typing import Any

# As the command line does, before NumPy is imported: see setnet/cli/app.py.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

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
            counts = library.catalog.counts()
            size = library.status().bytes
    finally:
        shutil.rmtree(folder)
    models = first.detect_seconds + first.describe_seconds
    return {
        "photos": counts.photos,
        "failed": counts.failed,
        "with_face_percent": round(100 * (1 - counts.without_faces / counts.photos), 3),
        "faces": counts.faces,
        "workers": first.workers,
        "seconds": round(first.seconds, 1),
        "photos_per_second": round(counts.photos / first.seconds, 1),
        "detector_seconds": round(first.detect_seconds, 1),
        "descriptor_seconds": round(first.describe_seconds, 1),
        "wall_over_models_per_worker": round(first.seconds / (models / first.workers), 3),
        "peak_memory_mb": round(peak / 1e6),
        "second_run_seconds": round(second.seconds, 2),
        "second_run_photos_per_second": round(second.scanned / second.seconds),
        "library_mb": round(size / 1e6, 1),
        "load_before": round(load, 1),
        "load_after": round(os.getloadavg()[0], 1),
    }


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


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _fill(path: Path, items: int) -> None:
    """Make a library of photos that never were: 2.8 faces each, random unit descriptors."""
    import numpy as np

    from setnet.library import Example, Library, StoredFace
    from setnet.library.indexing.photo_result import PhotoResult
    from setnet.library.store.photo_writer import PhotoWriter

    chance = np.random.default_rng(0)
    row = StoredFace(0, 10.0, 10.0, 90.0, 110.0, 0.99, bytes(40), '{"size": 90.0}')
    with Library.create(path) as library, library._writing() as index:
        writer = PhotoWriter(library._database, index)
        for at in range(0, items, 20_000):
            results = []
            for number in range(at, min(items, at + 20_000)):
                faces = int(chance.choice([2, 3, 4, 5, 7], p=[0.58, 0.22, 0.10, 0.05, 0.05]))
                vectors = chance.standard_normal((faces, 128), np.float32)
                vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
                results.append(
                    PhotoResult(
                        path=f"/photos/{number % 100}/{number}.jpg".encode(),
                        size=1,
                        hash=number.to_bytes(16, "little"),
                        taken=float(number * 1000),
                        width=100,
                        height=120,
                        faces=tuple(row._replace(ordinal=n) for n in range(faces)),
                        descriptors=vectors,
                    )
                )
            writer.store(results)
            if at == 0:
                for name, result in zip(("ann", "ben"), results, strict=False):
                    assert result.descriptors is not None
                    library.people.add(name, [Example(result.descriptors[0])])
        index.compact()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["index", "start"])
    parser.add_argument("--photos", type=Path, default=LFW)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--items", type=int, default=549_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.what == "index" and not given.photos.is_dir():
        sys.exit(f"no photos in {given.photos}: name a folder with --photos")
    result = index(given.photos, given.workers) if given.what == "index" else start(given.items)
    for name, value in result.items():
        print(f"{name:32} {value}")
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
