"""How often `setnet people add` warns of examples that are not one person's, rightly and wrongly.

    python -m studies.mixed_examples DESCRIPTORS [--half test] [--sets 3000] [--json FILE]

DESCRIPTORS is what `setnet describe` writes for the photos of LFW. Sets of two to eight faces are drawn from
the people of one half: all of one person (a warning is a false alarm), or with one or two faces of others (no
warning is a miss). `named` is how often the faces named are the ones of others. The rule was chosen on the
training half.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.people import half_of
from setnet.heads import ELEMENT_LOGISTIC
from setnet.library import read_descriptors
from setnet.library.examples import outsiders

KINDS = ((2, 0), (3, 0), (5, 0), (8, 0), (2, 1), (3, 1), (5, 1), (8, 1), (3, 2), (5, 2))


def drawn_sets(
    labels: NDArray[np.str_], size: int, others: int, number: int, chance: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Yield rows of sets: faces of one person, then `others` of different people."""
    rows = {name: np.flatnonzero(labels == name) for name in np.unique(labels)}
    names = [name for name, own in rows.items() if len(own) >= size - others]
    for _ in range(number):
        name = names[chance.integers(len(names))]
        own = chance.choice(rows[name], size - others, replace=False)
        non_matches = chance.permutation(np.flatnonzero(labels != name))
        yield np.concatenate([own, non_matches[:others]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("descriptors", type=Path)
    parser.add_argument("--half", choices=("train", "test"), default="test")
    parser.add_argument("--sets", type=int, default=3000, help="sets of each kind")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    descriptors, labels = read_descriptors(options.descriptors)
    half = half_of(labels, options.half)
    descriptors, labels = descriptors[half], labels[half]
    chance, results = np.random.default_rng(0), []
    print(f"{options.half} half of {options.descriptors.name}, {options.sets} sets of each kind")
    print("faces  of others  warned   named")
    for size, others in KINDS:
        warned = named = 0
        for rows in drawn_sets(labels, size, others, options.sets, chance):
            odd = outsiders(descriptors[rows], ELEMENT_LOGISTIC)
            warned += bool(odd)
            named += bool(odd) and odd == list(range(size - others, size))
        result = {"faces": size, "others": others, "warned": warned / options.sets}
        if others:
            result["named"] = named / options.sets
        results.append(result)
        right = f"{result['named']:8.2%}" if others else ""
        print(f"{size:5}  {others:9}  {result['warned']:6.2%}{right}")
    if options.json:
        options.json.write_text(json.dumps({"half": options.half, "results": results}, indent=1))


if __name__ == "__main__":
    main()
