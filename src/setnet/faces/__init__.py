"""Photos to faces to descriptors: open, detect, align, describe; and the registry of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setnet.lazy import lazy

if TYPE_CHECKING:
    from setnet.faces.describe.align import box_crop, five_point_crop
    from setnet.faces.describe.descriptor import Descriptor
    from setnet.faces.detect.detector import Detections, Detector
    from setnet.faces.models.download import download_model
    from setnet.faces.models.entry import ModelEntry, ModelFile
    from setnet.faces.face import Box, Face, Quality
    from setnet.faces.models.loading import load_descriptor, load_detector
    from setnet.faces.photo.photo import Photo, open_photo
    from setnet.faces.pipeline import StageTimes, faces_of
    from setnet.faces.models.registry import (
        ModelStatus,
        model_entries,
        model_entry,
        model_paths,
        models,
        write_model_entry,
    )
    from setnet.faces.settings import FaceSettings

# Names are imported on first use: a search by saved names must not pay for detectors.
_HOME = {
    "Box": "face",
    "Descriptor": "describe.descriptor",
    "Detections": "detect.detector",
    "Detector": "detect.detector",
    "Face": "face",
    "FaceSettings": "settings",
    "ModelEntry": "models.entry",
    "ModelFile": "models.entry",
    "ModelStatus": "models.registry",
    "Photo": "photo.photo",
    "Quality": "face",
    "StageTimes": "pipeline",
    "box_crop": "describe.align",
    "download_model": "models.download",
    "faces_of": "pipeline",
    "five_point_crop": "describe.align",
    "load_descriptor": "models.loading",
    "load_detector": "models.loading",
    "model_entries": "models.registry",
    "model_entry": "models.registry",
    "model_paths": "models.registry",
    "models": "models.registry",
    "open_photo": "photo.photo",
    "write_model_entry": "models.registry",
}

__all__ = [
    "Box",
    "Descriptor",
    "Detections",
    "Detector",
    "Face",
    "FaceSettings",
    "ModelEntry",
    "ModelFile",
    "ModelStatus",
    "Photo",
    "Quality",
    "StageTimes",
    "box_crop",
    "download_model",
    "faces_of",
    "five_point_crop",
    "load_descriptor",
    "load_detector",
    "model_entries",
    "model_entry",
    "model_paths",
    "models",
    "open_photo",
    "write_model_entry",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
