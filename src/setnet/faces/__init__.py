"""Photos to faces to descriptors: open, detect, align, describe; and the registry of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setnet.lazy import lazy

if TYPE_CHECKING:
    from setnet.faces.align import box_crop, five_point_crop
    from setnet.faces.descriptor import Descriptor
    from setnet.faces.detector import Detections, Detector
    from setnet.faces.download import download_model
    from setnet.faces.entry import ModelEntry, ModelFile
    from setnet.faces.face import Box, Face, Quality
    from setnet.faces.loading import load_descriptor, load_detector
    from setnet.faces.photo import Photo, open_photo
    from setnet.faces.pipeline import StageTimes, faces_of
    from setnet.faces.registry import (
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
    "Descriptor": "descriptor",
    "Detections": "detector",
    "Detector": "detector",
    "Face": "face",
    "FaceSettings": "settings",
    "ModelEntry": "entry",
    "ModelFile": "entry",
    "ModelStatus": "registry",
    "Photo": "photo",
    "Quality": "face",
    "StageTimes": "pipeline",
    "box_crop": "align",
    "download_model": "download",
    "faces_of": "pipeline",
    "five_point_crop": "align",
    "load_descriptor": "loading",
    "load_detector": "loading",
    "model_entries": "registry",
    "model_entry": "registry",
    "model_paths": "registry",
    "models": "registry",
    "open_photo": "photo",
    "write_model_entry": "registry",
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
