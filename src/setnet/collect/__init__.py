"""A labelled data set of people together, made out of an archive of photos with captions (section 4)."""

from setnet.collect.annotation import AnnotationQueue, Answer, Question
from setnet.collect.dataset import CollectedSet
from setnet.collect.rules import AnnotationRules
from setnet.collect.run import CollectRun, CollectSettings, Summary
from setnet.collect.steps import STEPS, RunStatus, StepReport, run_all, run_status, run_step, write_result

__all__ = [
    "STEPS",
    "AnnotationQueue",
    "AnnotationRules",
    "Answer",
    "CollectRun",
    "CollectSettings",
    "CollectedSet",
    "Question",
    "RunStatus",
    "StepReport",
    "Summary",
    "run_all",
    "run_status",
    "run_step",
    "write_result",
]
