"""The paper's experiments, one function each, and what they are measured with.

`evaluate_stress`, `evaluate_retrieval`, `evaluate_tradeoff`, `evaluate_matching`, `evaluate_end_to_end`,
`orthogonality`, `identify` and `fit_people` take a descriptor file (or draw virtual people) and return a
`Record`. `tables_of`, `plots_of` and `compared` show one record, `write_page` a folder of them.

>>> from pathlib import Path
>>> from setnet.evaluate import evaluate_stress, tables_of
>>> record = evaluate_stress(Path("lfw.npz"), methods=["mean", "sface-512"])  # doctest: +SKIP
>>> print(tables_of(record)[0].markdown())  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setnet.errors import missing_extra

__all__ = [
    "Domain",
    "GroupQuality",
    "Interrupted",
    "LabelledPeople",
    "Progress",
    "Record",
    "Row",
    "Table",
    "calibrate_head",
    "compared",
    "degrade_photos",
    "divided",
    "evaluate_adaptation",
    "evaluate_claim",
    "evaluate_collecting",
    "evaluate_end_to_end",
    "evaluate_grouping",
    "evaluate_matching",
    "evaluate_retrieval",
    "evaluate_stress",
    "evaluate_tradeoff",
    "faces_domain",
    "first_full_match",
    "fit_people",
    "full_match_recall",
    "glyphs_domain",
    "group_quality",
    "identify",
    "ndcg",
    "orthogonality",
    "pairwise_agreement",
    "plots_of",
    "read_people",
    "read_record",
    "tables_of",
    "train_heads",
    "video",
    "write_adaptation",
    "write_claim",
    "write_examples",
    "write_markdown",
    "write_page",
]

if TYPE_CHECKING:
    from setnet.evaluate.adaptation import evaluate_adaptation
    from setnet.evaluate.claim import evaluate_claim
    from setnet.evaluate.claim_data import Domain, faces_domain, glyphs_domain
    from setnet.evaluate.collecting import evaluate_collecting
    from setnet.evaluate.end_to_end import evaluate_end_to_end, write_examples
    from setnet.evaluate.fit import fit_people
    from setnet.evaluate.footage import video
    from setnet.evaluate.grouping import evaluate_grouping
    from setnet.evaluate.inputs import Interrupted
    from setnet.evaluate.matching import evaluate_matching
    from setnet.evaluate.measures import (
        GroupQuality,
        first_full_match,
        full_match_recall,
        group_quality,
        ndcg,
        pairwise_agreement,
    )
    from setnet.evaluate.one_face import identify, orthogonality
    from setnet.evaluate.people import LabelledPeople, divided, read_people
    from setnet.evaluate.photos import degrade_photos
    from setnet.evaluate.plots import plots_of
    from setnet.evaluate.ranking_calibration import calibrate_head
    from setnet.evaluate.record import Progress, Record, Row, read_record
    from setnet.evaluate.report import compared, write_adaptation, write_claim, write_markdown, write_page
    from setnet.evaluate.retrieval import evaluate_retrieval
    from setnet.evaluate.shipped_heads import train_heads
    from setnet.evaluate.stress import evaluate_stress
    from setnet.evaluate.tables import Table, tables_of
    from setnet.evaluate.tradeoff import evaluate_tradeoff
else:
    # name: the module that defines it, imported on first use
    _MODULES = {
        "Domain": "claim_data",
        "GroupQuality": "measures",
        "Interrupted": "inputs",
        "LabelledPeople": "people",
        "Progress": "record",
        "Record": "record",
        "Row": "record",
        "Table": "tables",
        "calibrate_head": "ranking_calibration",
        "compared": "report",
        "degrade_photos": "photos",
        "divided": "people",
        "evaluate_adaptation": "adaptation",
        "evaluate_claim": "claim",
        "evaluate_collecting": "collecting",
        "evaluate_end_to_end": "end_to_end",
        "evaluate_grouping": "grouping",
        "evaluate_matching": "matching",
        "evaluate_retrieval": "retrieval",
        "evaluate_stress": "stress",
        "evaluate_tradeoff": "tradeoff",
        "faces_domain": "claim_data",
        "first_full_match": "measures",
        "fit_people": "fit",
        "full_match_recall": "measures",
        "glyphs_domain": "claim_data",
        "group_quality": "measures",
        "identify": "one_face",
        "ndcg": "measures",
        "orthogonality": "one_face",
        "pairwise_agreement": "measures",
        "plots_of": "plots",
        "read_people": "people",
        "read_record": "record",
        "tables_of": "tables",
        "train_heads": "shipped_heads",
        "video": "footage",
        "write_adaptation": "report",
        "write_claim": "report",
        "write_examples": "end_to_end",
        "write_markdown": "report",
        "write_page": "report",
    }

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            module = import_module(f"{__name__}.{_MODULES[name]}")
        except ModuleNotFoundError as error:
            raise missing_extra(__name__, error) or error from None
        value = globals()[name] = getattr(module, name)
        return value

    def __dir__() -> list[str]:
        return __all__
