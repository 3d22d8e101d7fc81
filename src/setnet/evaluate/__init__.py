"""The paper's experiments, a module each, and what they are measured with.

A module such as `stress` has ``Settings``, ``run(settings)`` that returns a `Record`, and ``tables(record)``.
`compare_with_paper` shows a record beside the paper's tables.

>>> from pathlib import Path
>>> from setnet.evaluate import stress
>>> settings = stress.Settings(descriptors=Path("lfw.npz"), methods=["mean", "sface-512"])
>>> print(stress.tables(stress.run(settings))[0].markdown())  # doctest: +SKIP
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from setnet.lazy import lazy_names

__all__ = [
    "LFW_LIKE",
    "Domain",
    "Interrupted",
    "LabelledPeople",
    "Progress",
    "Record",
    "Row",
    "SimulatedWorld",
    "Table",
    "calibrate_head",
    "compare_with_paper",
    "evaluate_claim",
    "first_full_match",
    "folder_domain",
    "full_match_recall",
    "half_of",
    "identify",
    "ndcg",
    "orthogonality",
    "processor",
    "read_people",
    "read_press_photos",
    "read_record",
    "read_split",
    "refit_heads",
    "replace_block",
    "retrieval",
    "stress",
    "tradeoff",
    "train_test_split",
    "write_claim",
]

# The modules with a command of their own, in the order of the paper; the texts begin their settings too.
EXPERIMENTS = {
    "stress": "Section 5.1: nDCG of every method as the number of faces per set grows from 2 to 5.",
    "retrieval": "Section 5.2: set vectors alone, one and three examples per person, query aggregation.",
    "tradeoff": "Section 5.3: quality against time and bytes, every mode of the engine, re-ranking and tags.",
    "orthogonality": "Section 5.4: how orthogonal people's descriptors are, whitened and not.",
    "identify": "1:N identification of single faces and verification, the paper's check of its descriptor.",
}


def experiment_module(name: str) -> ModuleType:
    """Return the module of an experiment."""
    return import_module(f"{__name__}.{name}")


if TYPE_CHECKING:
    from setnet.evaluate import identify, orthogonality, retrieval, stress, tradeoff
    from setnet.evaluate.claim import evaluate_claim, write_claim
    from setnet.evaluate.claim_data import Domain, folder_domain
    from setnet.evaluate.heads import refit_heads
    from setnet.evaluate.measures import first_full_match, full_match_recall, ndcg
    from setnet.evaluate.people import (
        LFW_LIKE,
        LabelledPeople,
        half_of,
        read_people,
        read_press_photos,
        read_split,
        train_test_split,
    )
    from setnet.evaluate.ranking_calibration import calibrate_head
    from setnet.evaluate.record import Interrupted, Progress, Record, Row, processor, read_record
    from setnet.evaluate.report import compare_with_paper, replace_block
    from setnet.evaluate.tables import Table
    from setnet.evaluate.worlds import SimulatedWorld
else:
    __getattr__, __dir__ = lazy_names(__name__)
