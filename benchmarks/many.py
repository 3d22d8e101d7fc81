"""A collection of up to 10^8 simulated photos: built batch by batch, searched as one index and by searchers.

    python benchmarks/many.py --photos 100_000_000 --bytes 64 --folder /data/many   # 10 GB of disk
    python benchmarks/many.py --photos 10_000_000 --lists --folder /data/vectors    # with vectors: also `fast`
    python benchmarks/many.py                                                       # a trial, minutes

Faces are drawn with the covariances of real descriptors. A run that was stopped goes on where it was. The
searchers, two of each part, are behind proxies: they answer undisturbed, with a frozen connection before every
tenth query, and after one was killed, and every answer must be that of the collection opened as one index.
Figures go to FOLDER.json; `--page FOLDER.json` makes the tables of the docs of those of one run or several.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from setnet import SetIndex
from setnet.connect import CollectionClient
from setnet.engine import Collection, Mode
from setnet.engine.results import RankedItems
from setnet.evaluate import LFW_LIKE, ndcg
from setnet.train import VirtualPeople
from support.performance_page import machine
from tests.support.live_server import searcher_on
from tests.support.tcp_proxy import Proxy

BATCH = 500_000  # photos in a segment
PEOPLE = 1_000_000  # in all photos, at most
DIM = 128
K = 100
SAMPLE = 200_000  # photos of which both forms are built
Floats = NDArray[np.float32]


class World:
    """Photos of one to five people, who look as different as people in real descriptors, or more so."""

    def __init__(self, photos: int, difficulty: float = 1.0) -> None:
        self.photos, self.model = photos, VirtualPeople.load(LFW_LIKE).harder(difficulty)
        self.people = self.model.people(np.random.default_rng(1), min(PEOPLE, max(1000, photos // 18)))

    def batch(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many people are in each photo of a batch, and who they are: the same in every run."""
        rng, size = np.random.default_rng([2, number]), min(BATCH, self.photos - number * BATCH)
        counts = rng.choice(np.arange(1, 6), size, p=[0.45, 0.28, 0.14, 0.08, 0.05])
        return counts, rng.integers(0, len(self.people), counts.sum())

    def faces(self, seed: Sequence[int], who: NDArray[np.int64]) -> Floats:
        """Return a new face of each of some people."""
        rng, step = np.random.default_rng(seed), 50_000  # so many fit a processor's caches better than all
        parts = (who[at : at + step] for at in range(0, len(who), step))
        return np.concatenate([self.model.faces(rng, self.people, part) for part in parts])

    def queries(self, how_many: int) -> list[Floats]:
        """Return new faces of two or three people who are together in some photo."""
        counts, who = self.batch(0)
        starts, rng = np.cumsum(counts) - counts, np.random.default_rng(3)
        asked = []
        for i in range(how_many):
            photo = rng.choice(np.flatnonzero(counts >= 2 + i % 2))
            asked.append(self.faces([3, i], who[starts[photo] : starts[photo] + 2 + i % 2]))
        return asked


def build_batches(folder: Path, photos: int, worker: int, workers: int) -> None:
    """Add those batches of a worker that the collection has not yet, each as a part of its own."""
    collection, world, batches = Collection(folder), World(photos), -(-photos // BATCH)
    done = {listed.part for listed in collection.manifest.segments}
    for number in range(worker, batches, workers):
        if (number + 1, batches) in done:
            continue
        began, cpu = time.perf_counter(), time.process_time()
        counts, who = world.batch(number)
        rows, drawn = world.faces([4, number], who), time.process_time()
        ids = [f"p{number * BATCH + i}" for i in range(len(counts))]
        collection.add(ids, rows, counts, part=(number + 1, batches))
        spent = {
            "photos": len(ids), "faces": len(rows), "drawing": drawn - cpu,
            "adding": time.process_time() - drawn, "wall": time.perf_counter() - began,
            "most memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }  # fmt: skip
        with folder.with_suffix(".jsonl").open("a") as log:
            log.write(json.dumps(spent) + "\n")


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    return {"bytes_per_item": args.bytes} if args.bytes else {"head": "none", "precision": "float16"}


def build(args: argparse.Namespace) -> dict[str, Any]:
    Collection.create(args.folder, DIM, **options_of(args))
    spawn = multiprocessing.get_context("spawn")
    given = [(args.folder, args.photos, worker, args.processes) for worker in range(args.processes)]
    workers = [spawn.Process(target=build_batches, args=each) for each in given]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise SystemExit("some batches were not added")
    logged = [json.loads(line) for line in args.folder.with_suffix(".jsonl").open()]
    figures: dict[str, Any] = {name: sum(one[name] for one in logged) for name in logged[0]}
    figures["most memory"] = max(one["most memory"] for one in logged)
    compacted = args.folder.with_suffix(".compacted")
    if args.lists and not compacted.exists():
        began, cpu = time.perf_counter(), time.process_time()
        Collection(args.folder).compact(lists=True, keep=0)
        spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - began}
        compacted.write_text(json.dumps(spent))
    with SetIndex.open(args.folder) as index:
        stats = index.stats()
    compacting = json.loads(compacted.read_text()) if args.lists else {}
    return figures | {
        "compacting": compacting, "segments": stats.segments, "bytes": stats.bytes, "budget": args.bytes
    }  # fmt: skip


def memory(pid: int) -> dict[str, int]:
    """Return the bytes that a process holds beside mapped files, and with these."""
    text = Path(f"/proc/{pid}/status").read_text()
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in text.splitlines() if " kB" in line}
    return {"anonymous": kilobytes["RssAnon"] * 1024, "with files": kilobytes["VmRSS"] * 1024}


def forget_files(folder: Path) -> None:
    """Let the system drop a collection's files from memory, if no process has them open."""
    for file in (folder / "segments").iterdir():
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


Search = Callable[[Floats], RankedItems]


def timed(
    search: Search, asked: Sequence[Floats], before: Callable[[int], None] = lambda _: None
) -> tuple[dict[str, list[float]], list[RankedItems]]:
    """Return the times of searches in milliseconds, and their hits; ``before`` each is called with its number."""
    found, times = [], dict[str, list[float]](wall=[], cpu=[])
    for number, query in enumerate(asked):
        before(number)
        began, cpu = time.perf_counter(), time.process_time()
        found.append(search(query))
        times["wall"].append((time.perf_counter() - began) * 1000)
        times["cpu"].append((time.process_time() - cpu) * 1000)
    return times, found


def modes_of(args: argparse.Namespace) -> list[Mode]:
    return ["exact", "fast"] if args.lists else ["exact"]


def search_alone(args: argparse.Namespace) -> dict[str, Any]:
    """Search the collection as one index in this process: after its files left the memory, and again."""
    asked, figures = World(args.photos).queries(args.queries), dict[str, Any]()
    for mode in modes_of(args):
        cold = dict[str, list[float]](wall=[], cpu=[])
        for query in asked[:3]:
            forget_files(args.folder)
            with SetIndex.open(args.folder) as index:
                for kind, values in timed(partial(index.search, k=K, mode=mode), [query])[0].items():
                    cold[kind] += values
        with SetIndex.open(args.folder) as index:
            search = partial(index.search, k=K, mode=mode)
            timed(search, asked[:2])
            figures[mode] = {"cold": cold, "warm": timed(search, asked)[0]}
    return figures


def search_apart(args: argparse.Namespace) -> dict[str, Any]:
    """Ask searchers through proxies: undisturbed, with frozen connections, and after one was killed."""
    asked, figures = World(args.photos).queries(args.queries), dict[str, Any]()
    with ExitStack() as stack:
        parts = [f"{i % args.parts + 1}/{args.parts}" for i in range(args.copies * args.parts)]
        running = [stack.enter_context(searcher_on(args.folder, part)) for part in parts]
        proxies = [stack.enter_context(Proxy(one.url)) for one in running]
        client = stack.enter_context(CollectionClient([proxy.url for proxy in proxies], timeout=300))
        index = stack.enter_context(SetIndex.open(args.folder))

        def freeze(number: int) -> None:
            if number % 10 == 0:
                proxies[number // 10 % len(proxies)].freeze()

        for mode in modes_of(args):
            search = partial(client.search, k=K, mode=mode)
            timed(search, asked[:5])
            calm, found = timed(search, asked)
            if found[:20] != [index.search(query, K, mode) for query in asked[:20]]:
                raise SystemExit("the searchers answer something else than one index")
            frozen, again = timed(search, asked, freeze)
            if again != found:
                raise SystemExit("frozen connections change answers")
            figures[mode] = {"calm": calm["wall"], "frozen": frozen["wall"]}
        figures["memory"] = memory(running[0].process.pid)
        if args.copies > 1:
            running[0].process.kill()
            killed, again = timed(search, asked)
            if again != found:
                raise SystemExit("a killed searcher changes answers")
            figures[mode]["killed"] = killed["wall"]
    return figures | {"parts": args.parts, "copies": args.copies}


def quality(args: argparse.Namespace) -> dict[str, Any]:
    """Return nDCG@10 of a sample of photos, kept in so many bytes and as floats, for three people asked for."""
    figures, sizes = dict[str, Any](), (args.bytes, 0) if args.bytes else ()
    for difficulty in (1.0, 1.7) if args.bytes else ():
        world = World(min(SAMPLE, args.photos), difficulty)
        counts, who = world.batch(0)
        rows, starts = world.faces([5], who), np.cumsum(counts) - counts
        owner = np.repeat(np.arange(len(counts)), counts)
        picked = np.random.default_rng(4).choice(np.flatnonzero(counts >= 3), 200, replace=False)
        for size in sizes:
            options: dict[str, Any] = {"bytes_per_item": size} if size else {"head": "none"}
            shares = []
            with TemporaryDirectory() as folder, SetIndex.create(f"{folder}/sample", DIM, **options) as index:
                index.add([str(i) for i in range(len(counts))], rows, counts)
                for photo in picked.tolist():
                    named = who[starts[photo] : starts[photo] + 3]
                    relevance = np.zeros(len(counts), np.int64)
                    for person in np.unique(named):
                        relevance[np.unique(owner[who == person])] += 1
                    hits = np.array(
                        [int(name) for name in index.search(world.faces([6, photo], named), 10).ids]
                    )
                    best = -np.sort(-relevance)[:100]
                    shares.append(np.mean(ndcg(relevance[hits][None], best[None], 10)))
            figures[f"difficulty {difficulty:g}, {f'{size} bytes' if size else 'floats'}"] = float(
                np.mean(shares)
            )
    return figures


def spread(times: Sequence[float]) -> str:
    shares = [float(np.percentile(times, share)) / 1000 for share in (50, 99)]
    return " / ".join(f"{value:.2f}" if value < 10 else f"{value:.0f}" for value in shares) + " s"


def rows_of(run: dict[str, Any]) -> dict[str, str]:
    """Return what the table says of a run, of the stages that it has."""
    build, alone, apart = run["build"], run.get("alone", {}), run.get("apart", {})
    rows = {
        "photos, faces": f"{build['photos']:,}, {build['faces']:,}",
        "on disk": f"{build['bytes'] / 1e9:.1f} GB, {build['bytes'] / build['photos']:.0f} bytes per photo",
        "adding, processor": f"{build['adding']:,.0f} s (and {build['drawing']:,.0f} s to draw the faces)",
        "memory of the writer, at most": f"{build['most memory'] / 1e9:.1f} GB",
    }
    if build["compacting"]:
        rows["inverted lists, processor"] = f"{build['compacting']['cpu']:,.0f} s"
    for mode in ("exact", "fast"):
        times = {}
        if mode in alone:
            cold, warm = alone[mode]["cold"], alone[mode]["warm"]
            times = {"processor": warm["cpu"], "wall": warm["wall"]}
            times |= {"first touch, processor": cold["cpu"], "first touch, wall": cold["wall"]}
        if mode in apart:
            kinds = {
                "calm": "searchers",
                "frozen": "a connection frozen now and then",
                "killed": "one killed",
            }
            times |= {
                f"{name}, wall": apart[mode][kind] for kind, name in kinds.items() if kind in apart[mode]
            }
        rows |= {f"`{mode}`, p50 / p99, {name}": spread(values) for name, values in times.items()}
    if apart:
        rows["memory of a searcher beside mapped files"] = f"{apart['memory']['anonymous'] / 1e9:.2f} GB"
        rows["searchers"] = f"{apart['parts']} parts, {apart['copies']} of each"
    for name, share in run.get("quality", {}).items():
        if name != "machine":
            rows[f"nDCG@10 of {SAMPLE:,} photos, {name}"] = f"{share:.1f}"
    return rows


def write_page(files: Sequence[Path]) -> None:
    """Write the tables of the docs by the figures of some runs, the one for the billion first."""
    runs = [json.loads(file.read_text()) for file in files]
    every = [rows_of(run) for run in runs]
    names = list(dict.fromkeys(name for rows in every for name, value in rows.items() if value))
    kinds = [
        f"{run['build']['photos']:,} photos, "
        + (f"{size} bytes each" if (size := run["build"]["budget"]) else "vectors")
        for run in runs
    ]
    made = f"Made by `python benchmarks/many.py` on {runs[0]['alone']['machine']}"
    figures = {
        "title": "Many photos", "made_by": f"{made}, beside other work.", "remarks": [],
        "tables": [{
            "title": "Many photos", "columns": ["", *kinds],
            "rows": [[name, *(rows.get(name, "") for rows in every)] for name in names],
        }],
    }  # fmt: skip
    build, alone, photos = runs[0]["build"], runs[0]["alone"], runs[0]["build"]["photos"]

    def scaled(what: str, amount: float, form: Callable[[float], str]) -> list[str]:
        return [what, form(amount), form(amount / photos * 1e9)]

    gigabytes, seconds = "{:,.0f} GB".format, "{:,.0f} s".format
    billion = {
        "title": "A billion photos, on paper",
        "made_by": f"{made}; the column of a billion is the measured one times {1e9 / photos:g}.",
        "remarks": [],
        "tables": [{
            "title": "A billion photos, on paper",
            "columns": ["what", f"{photos:,}, measured", "a billion"],
            "rows": [
                scaled("disk", build["bytes"] / 1e9, gigabytes),
                scaled("codes that `exact` reads", build["budget"] * photos / 1e9, gigabytes),
                scaled("adding, all cores together", build["adding"], lambda s: f"{s / 60:,.0f} minutes"),
                scaled("`exact` for two or three people, all cores together", float(np.median(alone["exact"]["warm"]["cpu"])) / 1000, seconds),
            ],
        }],
    }  # fmt: skip
    for name, found in {"many-photos": figures, "billion": billion}.items():
        place = Path(__file__).parents[1] / f"docs/results/{name}.json"
        place.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


STAGES = {"build": build, "alone": search_alone, "apart": search_apart, "quality": quality}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photos", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=0, help="budget codes of so many bytes, without vectors")
    parser.add_argument("--lists", action="store_true", help="inverted lists, and `fast`")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/many"))
    parser.add_argument("--processes", type=int, default=1, help="that build")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--parts", type=int, default=2)
    parser.add_argument("--copies", type=int, default=2, help="searchers of each part")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--page", type=Path, nargs="+", metavar="FOLDER.json", help="write docs/results")
    args = parser.parse_args()
    if args.page:
        write_page(args.page)
        return
    kept = args.folder.with_suffix(".json")
    figures = json.loads(kept.read_text()) if kept.exists() else {}
    for stage in args.only:
        figures[stage] = STAGES[stage](args) | {"machine": machine()}
        print(stage, json.dumps(figures[stage]), flush=True)
        kept.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
