"""Heads refitted to any descriptor, and judged on people that they were not made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from setnet.errors import InvalidInputError
from setnet.evaluate import stress
from setnet.evaluate.methods import Methods
from setnet.evaluate.people import read_people, train_test_split
from setnet.evaluate.record import OnProgress, Record
from setnet.evaluate.representations import SetVectors
from setnet.evaluate.settings import FITTING_SETS
from setnet.heads import SetNet
from setnet.library.descriptor_files import read_model
from setnet.train import RECIPES, fit_head


def refit_heads(
    data: Path,
    out: Path,
    name: str = "lift",
    *,
    degraded: Sequence[Path] = (),
    descriptor: str = "",
    sets: int = 64_000,
    seed: int = 0,
    progress: OnProgress | None = None,
) -> Record:
    """Make heads of 128 and 512 bytes for the descriptors of a file; return the stress test of them.

    They are made from one half of the people, calibrated there, and tested on the other.

    Parameters
    ----------
    out, name
        The folder of the heads, and what they are called: ``name-128`` and ``name-512``.
    degraded
        Descriptors of worse photos of the same people, which heads are made from too.
    descriptor
        What the descriptors are called; as the file says by default.
    """
    split = train_test_split(read_people(data), data.name, seed)
    recipes = [recipe for recipe in RECIPES.values() if recipe.fits(split.train.dim)]
    if not recipes:
        raise InvalidInputError(
            f"{data}: descriptors of {split.train.dim} dimensions have too few products for a head of 128 "
            "bytes, 45 dimensions or more are needed"
        )
    vectors, labels = split.train.descriptors, split.train.labels
    for people in map(read_people, degraded):
        rows = np.isin(people.labels, split.train.labels)
        vectors = np.concatenate([vectors, people.descriptors[rows]])
        labels = np.concatenate([labels, people.labels[rows]])
    methods, files = Methods(split.train, seed, fitting_sets=min(FITTING_SETS, sets)), []
    out.mkdir(parents=True, exist_ok=True)
    for recipe in recipes:
        own = replace(recipe, name=recipe.name.replace("lift", name))
        head = fit_head(own, vectors, labels, descriptor or read_model(data))
        files.append(out / f"{own.name}.safetensors")
        head.with_logistic(methods.fitted_logistic(SetVectors(SetNet(head)))).save(files[-1])
    compared = ["mean", *methods.head_names()]
    own_heads = [str(file) for file in files]
    settings = stress.Settings(descriptors=data, methods=compared, heads=own_heads, sets=sets, seed=seed)
    return stress.run(settings, progress=progress)
