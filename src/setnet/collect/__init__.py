"""A labelled data set of people together, made out of an archive of photos with captions (section 4)."""

from setnet.collect.annotation import AnnotationQueue, Answer, Question
from setnet.collect.classifier import RuleCalibration, calibrate_rules
from setnet.collect.dataset import CollectedSet
from setnet.collect.rules import AnnotationRules
from setnet.collect.run import CollectRun, CollectSettings, Summary
from setnet.collect.search import CaptionArchive, CaptionedPhoto, PhotoSource
from setnet.collect.steps import STEPS, RunStatus, StepReport, run_all, run_status, run_step, write_result

__all__ = [
    "STEPS",
    "AnnotationQueue",
    "AnnotationRules",
    "Answer",
    "CaptionArchive",
    "CaptionedPhoto",
    "CollectRun",
    "CollectSettings",
    "CollectedSet",
    "PhotoSource",
    "Question",
    "RuleCalibration",
    "RunStatus",
    "StepReport",
    "Summary",
    "calibrate_rules",
    "run_all",
    "run_status",
    "run_step",
    "write_result",
]
