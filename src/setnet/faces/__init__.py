"""Photos to faces to descriptors: open, detect, align, describe; and the registry of models.

It needs the extra `photos`.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from setnet.errors import MissingExtraError
from setnet.lazy import lazy_names

for _library in ("PIL", "cv2", "onnxruntime"):  # they are imported where they are used, which may be late
    if find_spec(_library) is None:
        raise MissingExtraError(__name__, _library, "photos")

__all__ = [
    "PRESETS",
    "Box",
    "Descriptor",
    "Detections",
    "Detector",
    "Face",
    "FaceSettings",
    "Metric",
    "ModelEntry",
    "ModelFile",
    "ModelStatus",
    "Photo",
    "Quality",
    "StageTimes",
    "add_model",
    "add_model_file",
    "describe_faces",
    "extract_faces",
    "load_descriptor",
    "load_detector",
    "model_entries",
    "model_entry",
    "model_paths",
    "models",
    "open_photo",
    "remove_model",
]

if TYPE_CHECKING:
    from setnet.faces.descriptor import Descriptor
    from setnet.faces.detector import Detections, Detector
    from setnet.faces.face import Box, Face, Quality
    from setnet.faces.metric import Metric
    from setnet.faces.photo import Photo, open_photo
    from setnet.faces.pipeline import StageTimes, describe_faces, extract_faces
    from setnet.faces.registry import (
        ModelEntry,
        ModelFile,
        ModelStatus,
        model_entries,
        model_entry,
        model_paths,
        models,
    )
    from setnet.faces.sessions import load_descriptor, load_detector
    from setnet.faces.settings import PRESETS, FaceSettings
    from setnet.faces.user_models import (
        add_model,
        add_model_file,
        remove_model,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)
