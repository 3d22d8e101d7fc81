"""Random changes of an index or a library, the model of what they store, and the child that makes them."""

from __future__ import annotations

import copy
import os
import random
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from setnet import SetIndex
from setnet.errors import InvalidInputError, SetNetError
from setnet.library import Library
from tests.faults.library_scenarios import library_contents, make_library, photos_folder
from tests.faults.scenarios import elements, make_index

__all__ = ["STORES", "Change", "IndexStore", "State", "Store", "run_child"]

State = dict[str, Any]
Change = list[Any]  # what to do, and with what
# Of a child whose interrupt was taken by an import in C, or by an index run, which returns what it has.
MOST_CHANGES = 60
PHOTOS = {"b.jpg": "old/b.jpg", "d.jpg": "new/d.jpg"}  # old/a.jpg is never forgotten


class Store(Protocol):
    """One kind of store: how it is made, changed and read, and a model of it."""

    def make(self, root: Path) -> State:
        """Make the store; return the model of what it holds."""

    def open(self, root: Path) -> Any:
        """Open the store for writing."""

    def propose(self, state: State, chance: random.Random) -> Change:
        """Return a change that is possible in a state."""

    def apply(self, state: State, change: Change) -> State:
        """Return the state after a change."""

    def perform(self, opened: Any, change: Change, after: State) -> None:
        """Make a change, or complete one that was cut short."""

    def expected(self, state: State) -> Any:
        """Return what `contents` has to be in a state."""

    def contents(self, root: Path) -> Any:
        """Return what the store holds, after a check of its files."""


class IndexStore:
    """An index: items by id with the seed and number of their elements."""

    def make(self, root: Path) -> State:
        make_index(root)
        items = {f"i{n}": [n, 2, n // 2 if n % 2 == 0 else None] for n in range(13)}
        return {"items": items}

    def open(self, root: Path) -> SetIndex:
        return SetIndex.open(root / "index")

    def propose(self, state: State, chance: random.Random) -> Change:
        items = sorted(state["items"])
        kind = chance.choices(["add", "upsert", "delete", "compact"], [5, 2, 3, 1])[0]
        if kind == "delete" or len(items) > 60:
            return ["delete", chance.sample(items, min(len(items), chance.randint(1, 8)))]
        if kind == "compact":
            return ["compact"]
        number = chance.randint(1, 5)
        some = chance.sample(items, min(len(items), number)) if kind == "upsert" else []
        names = some or [f"x{chance.randrange(10**9)}" for _ in range(number)]
        seeds = [[chance.randrange(10**6), chance.randint(0, 3), chance.choice([None, 1, 2])] for _ in names]
        return ["add", dict(zip(names, seeds, strict=True))]

    def apply(self, state: State, change: Change) -> State:
        state = {"items": dict(state["items"])}
        if change[0] == "add":
            state["items"] |= change[1]
        elif change[0] == "delete":
            for name in change[1]:
                state["items"].pop(name, None)
        return state

    def perform(self, opened: SetIndex, change: Change, after: State) -> None:
        if change[0] == "add":
            seeds = list(change[1].values())
            rows = [row for seed, count, _ in seeds for row in elements(seed, count)]
            details = [{"n": n} for _, _, n in seeds]
            opened.add(list(change[1]), rows or elements(0, 0), [count for _, count, _ in seeds], details)
        elif change[0] == "delete":
            opened.delete([name for name in change[1] if name in opened])
        else:
            opened.compact()

    def expected(self, state: State) -> Any:
        return {
            name: (elements(seed, count).tobytes(), {} if n is None else {"n": n})
            for name, (seed, count, n) in state["items"].items()
        }

    def contents(self, root: Path) -> Any:
        with SetIndex.open(root / "index") as index:
            assert index.check().problems == []
            return self.held(index)

    def held(self, index: SetIndex) -> Any:
        """Return all items with their elements and attributes."""
        stored = index.contents()
        rows = np.split(stored.elements, np.cumsum(stored.counts)[:-1]) if len(stored.ids) else []
        vectors = {i: own.tobytes() for i, own in zip(stored.ids, rows, strict=True)}
        return {i.id: (vectors.pop(i.id), dict(i.attributes)) for i in index}


class LibraryStore:
    """A library: its photos, and its people with the photos that their examples come from."""

    def make(self, root: Path) -> State:
        make_library(root)
        return {"photos": ["a.jpg", "b.jpg"], "people": {"Anna": ["a.jpg"]}}

    def open(self, root: Path) -> Library:
        return Library.open(root / "library")

    def propose(self, state: State, chance: random.Random) -> Change:
        people, known = sorted(state["people"]), [p for p in PHOTOS if p in state["photos"]]
        kind = chance.choice(["index", "forget", "person", "rename", "remove"])
        if kind == "forget" and known:
            return ["forget", chance.choice(known)]
        if kind == "remove" and people:
            return ["remove", chance.choice(people)]
        if kind == "rename" and people:
            return ["rename", chance.choice(people), f"N{chance.randrange(10**9)}"]
        if kind == "person" and len(people) < 5:
            return ["person", f"P{chance.randrange(10**9)}", chance.choice(list(PHOTOS))]
        return ["index", chance.choice(list(PHOTOS))]

    def apply(self, state: State, change: Change) -> State:
        state = copy.deepcopy(state)
        kind, *more = change
        if kind == "index":
            state["photos"] = sorted({*state["photos"], more[0]})
        elif kind == "forget":
            state["photos"] = [p for p in state["photos"] if p != more[0]]
            kept = {name: [p for p in photos if p != more[0]] for name, photos in state["people"].items()}
            state["people"] = kept
        elif kind == "person":
            state["people"][more[0]] = [more[1]]
        elif kind == "rename":
            state["people"][more[1]] = state["people"].pop(more[0])
        else:
            del state["people"][more[0]]
        return state

    def perform(self, opened: Library, change: Change, after: State) -> None:
        kind, *more = change
        if kind == "index":
            opened.index([photos_folder() / PHOTOS[more[0]]], workers=0)
        elif kind == "forget":
            try:
                opened.forget([photos_folder() / PHOTOS[more[0]]])
            except InvalidInputError:  # done by the attempt before
                assert more[0] not in [photo.path.name for photo in opened.photos.all_photos()]
        elif kind == "person" and more[0] not in opened.people:
            opened.people.add_photos(more[0], [str(photos_folder() / PHOTOS[more[1]])])
        elif kind == "rename" and more[0] in opened.people:
            opened.people.rename(*more)
        elif kind == "remove" and more[0] in opened.people:
            opened.people.remove(more[0], for_good=True)

    def expected(self, state: State) -> Any:
        return state["photos"], {name: len(photos) for name, photos in state["people"].items()}

    def contents(self, root: Path) -> Any:
        found = library_contents(root, adds_b=True)
        return sorted(found["photos"]), found["people"]


STORES: dict[str, Store] = {"index": IndexStore(), "library": LibraryStore()}


def walk(request: dict[str, Any], report: Callable[[list[Any]], object]) -> None:
    """Make random changes until a signal comes; report each before and after, and how it ended.

    After an interrupt the child stops, or goes on with what it has open, or opens it again; going on begins
    with the change that was cut short.
    """
    chance, store = random.Random(request["seed"]), STORES[request["kind"]]
    root, state = Path(request["root"]), request["state"]
    after_interrupt = chance.choice(["stop", "go on", "open again"])
    cut_short: Change | None = None

    def changes(opened: Any, number: int) -> None:
        nonlocal state, cut_short
        for _ in range(number):
            change = cut_short = cut_short or store.propose(state, chance)
            report(["begin", change])
            after = store.apply(state, change)
            store.perform(opened, change, after)
            state, cut_short = after, None
            report(["end"])

    report(["ready"])
    try:
        with store.open(root) as opened:
            try:
                changes(opened, MOST_CHANGES)
            except (KeyboardInterrupt, SetNetError) as error:
                report(["interrupted", repr(error)])
                if after_interrupt == "go on":
                    changes(opened, 3)
    except (KeyboardInterrupt, SetNetError) as error:
        report(["interrupted", repr(error)])
    if after_interrupt == "open again":
        with store.open(root) as opened:
            changes(opened, 3)
    report(["closed"])


def run_child(request: dict[str, Any], send: Callable[[list[Any]], object]) -> None:
    """Walk in a forked child, which never returns."""
    try:
        walk(request, send)
    except KeyboardInterrupt:  # outside of any change
        send(["closed"])
    except BaseException:
        send(["foreign", traceback.format_exc()])
    os._exit(0)
