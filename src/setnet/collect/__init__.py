"""A labelled data set of people together, made out of an archive of photos with captions (section 4)."""

from setnet.collect.annotation import (
    Agreement,
    AnnotationQueue,
    Answer,
    Decision,
    Imported,
    Question,
    QueueState,
    agreements,
    cohens_kappa,
    import_answers,
)
from setnet.collect.classifier import FaceClassifier, RuleCalibration, calibrate_rules
from setnet.collect.dataset import CollectedSet, is_collected, together_queries
from setnet.collect.faces import gallery
from setnet.collect.names import NameMatcher
from setnet.collect.result import final_rows
from setnet.collect.rules import AnnotationRules, Outcome
from setnet.collect.run import CollectRun, CollectSettings, Manifest, Summary
from setnet.collect.search import CaptionArchive, CaptionedPhoto, PhotoSource, pairs_of
from setnet.collect.steps import STEPS, RunStatus, StepReport, run_all, run_step, status_of, write_result

__all__ = [
    "STEPS",
    "Agreement",
    "AnnotationQueue",
    "AnnotationRules",
    "Answer",
    "CaptionArchive",
    "CaptionedPhoto",
    "CollectRun",
    "CollectSettings",
    "CollectedSet",
    "Decision",
    "FaceClassifier",
    "Imported",
    "Manifest",
    "NameMatcher",
    "Outcome",
    "PhotoSource",
    "Question",
    "QueueState",
    "RuleCalibration",
    "RunStatus",
    "StepReport",
    "Summary",
    "agreements",
    "calibrate_rules",
    "cohens_kappa",
    "final_rows",
    "gallery",
    "import_answers",
    "is_collected",
    "pairs_of",
    "run_all",
    "run_step",
    "status_of",
    "together_queries",
    "write_result",
]
