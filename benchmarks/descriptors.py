"""How well each descriptor model tells people apart, and what one face costs, side by side.

    setnet describe LFW/images --descriptor NAME --out NAME.npz         (for each model)
    python benchmarks/descriptors.py NAME=NAME.npz ... [--degraded NAME=FILE.npz ...] [--write FILE.md]

The threshold of each model is fitted to the training half of LFW's people, at one false match in ten thousand
pairs of different people; the test half then shows how many of the pairs of one person reach it, with every
person counting the same, and how many impostor pairs really do. `--degraded` has descriptors of worse copies
of the photos (`python -m studies.degrade`), judged by the same threshold. Times are processor time of one core:
all models describe the same crops in turns, in one process, eight at a time as an index run does.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from setnet.evaluate import half_of
from setnet.faces import load_descriptor, model_entry
from setnet.library import read_descriptors
from setnet.train import fit_model_calibration, match_rates
from support.performance_page import machine, write_section

BATCH = 8


def times_per_face(names: list[str], repeats: int) -> dict[str, float]:
    """Return the fewest processor seconds per face of each model, all measured in turns."""
    crops = list(np.random.default_rng(0).integers(0, 256, (BATCH, 112, 112, 3)).astype(np.uint8))
    models = {name: load_descriptor(name) for name in names}
    best = dict.fromkeys(names, np.inf)
    for turn in range(repeats + 1):
        for name, model in models.items():
            began = time.process_time()
            model.describe(crops)
            if turn:  # the first run of a model prepares its memory
                best[name] = min(best[name], (time.process_time() - began) / BATCH)
    return best


def table(files: dict[str, Path], degraded: dict[str, Path], repeats: int) -> Iterator[str]:
    yield "| model | dim | licence | threshold | true matches | false matches | degraded photos: true, false | ms per face |"
    yield "|---|---|---|---|---|---|---|---|"
    times = times_per_face(list(files), repeats)
    for name, file in files.items():
        rows, labels = read_descriptors(file)
        train, test = half_of(labels, "train"), half_of(labels, "test")
        threshold = fit_model_calibration(rows[train], labels[train])["threshold"]
        here = match_rates(rows[test], labels[test], threshold)
        worse = ""
        if name in degraded:
            rows, labels = read_descriptors(degraded[name])
            test = half_of(labels, "test")
            there = match_rates(rows[test], labels[test], threshold)
            worse = f"{there.true_matches:.3f}, {there.false_matches:.1e}"
        entry = model_entry(name, "descriptor")
        yield (
            f"| `{name}` | {entry.dim} | {entry.licence} | {threshold:.3f} | **{here.true_matches:.3f}** | "
            f"{here.false_matches:.1e} | {worse} | {1000 * times[name]:.1f} |"
        )


def named(text: str) -> tuple[str, Path]:
    name, _, file = text.partition("=")
    if not file:
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=FILE.npz")
    return name, Path(file)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=named, metavar="NAME=FILE.npz")
    parser.add_argument("--degraded", nargs="*", type=named, default=[], metavar="NAME=FILE.npz")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--write", type=Path, help="put the table into this Markdown file")
    options = parser.parse_args()
    lines = []
    for line in table(dict(options.files), dict(options.degraded), options.repeats):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        words = " ".join(f"{name}={file.name}" for name, file in options.files)
        origin = f"Written by `python benchmarks/descriptors.py {words} ...` on {machine('onnxruntime')}."
        write_section(options.write, "descriptors", "\n".join([origin, "", *lines]))


if __name__ == "__main__":
    main()
