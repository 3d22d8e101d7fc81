"""Label invented photos and write the data set of them, to see that memory stays bounded.

    python benchmarks/collect.py [--rows 100000] [--names 500] [--json FILE] [--page FILE.md]

Manifests of so many rows are written, then the steps `labels` and `result` are run. Printed are the seconds and
the most memory the process held after each step, beside that of a tenth of the rows in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from setnet.collect import CollectRun, run_step, write_result
from setnet.collect.run import pack
from setnet.collect.steps import STEPS, write_manifest
from setnet.system import peak_memory
from support.performance_page import machine, write_section

DIM, PORTRAITS, NOISE = 128, 3, 0.06
FACES, SHARES = (2, 3, 4, 5, 6), (0.58, 0.22, 0.1, 0.05, 0.05)  # as in the paper's table 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--names", type=int, default=500)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measured(asked.rows, asked.names)))
        return
    results = []
    for rows in (asked.rows // 10, asked.rows):
        command = [sys.executable, __file__, "--one", "--rows", str(rows), "--names", str(asked.names)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
        print(results[-1], flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1))
    if asked.page:
        write_section(asked.page, "collect at scale", as_table(results))


def as_table(results: Sequence[Mapping[str, Any]]) -> str:
    heads = list(results[0])
    lines = [heads, ["---"] * len(heads), *([f"{result[head]:,}" for head in heads] for result in results)]
    made = f"Made by `python benchmarks/collect.py` on {machine('numpy')}."
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{made}"


def measured(rows: int, names: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="setnet-collect-") as made:
        run = invented(Path(made), rows, names)
        facts: dict[str, Any] = {"rows": rows, "names": names, "MB before": peak_memory() >> 20}
        for step, work in (
            ("labels", lambda: run_step(run, "labels")),
            ("result", lambda: write_result(run, Path(made) / "set", unanswered="unknown")),
        ):
            began, cpu = time.monotonic(), time.process_time()
            work()
            facts[f"{step}, s"] = round(time.monotonic() - began)
            facts[f"{step}, s of CPU"] = round(time.process_time() - cpu)
            facts[f"MB after {step}"] = peak_memory() >> 20
        facts["photos kept"] = run.manifest("result").summary().kept
    return facts


def invented(place: Path, rows: int, names: int) -> CollectRun:
    for folder in ("portraits", "archive"):
        (place / folder).mkdir()
    run = CollectRun.begin(
        place / "run", portraits=place / "portraits", photos=[place / "archive"], split=(0.0, 0.0, 1.0)
    )
    rng = np.random.default_rng(0)
    people = unit(rng.normal(size=(names, DIM)))

    def write(step: str, found: Any) -> None:
        write_manifest(run, STEPS[step], lambda _: found)

    called = [f"Person {n}" for n in range(names)]
    write("names", ({"entry": name, "name": name, "aliases": [], "kept": True} for name in called))
    write(
        "portraits",
        (
            {
                "portrait": f"{n}-{k}",
                "name": called[n],
                "kept": True,
                "descriptor": pack(seen(people[n], rng)),
            }
            for n in range(names)
            for k in range(PORTRAITS)
        ),
    )
    for step in ("captions", "pairs", "photos", "distractors"):
        write(step, ())
    paths = [str(place / "archive" / f"{n // 1000}" / f"{n}.jpg") for n in range(rows)]
    write("faces", (photo_row(path, people, called, rng) for path in paths))
    write("duplicates", ({"photo": path, "kept": True} for path in paths))
    return run


def photo_row(path: str, people: np.ndarray, called: list[str], rng: np.random.Generator) -> dict[str, Any]:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).touch()
    faces = int(rng.choice(FACES, p=SHARES))
    who = rng.choice(len(people), 2, replace=False)
    vectors = [seen(people[n], rng) for n in who]
    vectors += list(unit(rng.normal(size=(faces - 2, DIM))).astype(np.float32))
    described = [
        {
            "box": [100.0 * n, 0.0, 100.0 * n + 90, 90.0],
            "score": 0.9,
            "landmarks": pack(np.zeros(10, np.float32)),
            "descriptor": pack(vector),
        }
        for n, vector in enumerate(vectors)
    ]
    query = [called[n] for n in who]
    return {
        "photo": path,
        "kept": True,
        "width": 100 * faces,
        "height": 100,
        "query": query,
        "text": f"{query[0]} and {query[1]} at the opening",
        "faces": described,
    }


def seen(person: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return unit(person + NOISE * rng.normal(size=DIM)).astype(np.float32)


def unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


if __name__ == "__main__":
    main()
