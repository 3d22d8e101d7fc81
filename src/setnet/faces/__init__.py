"""Photos to faces to descriptors: open, detect, align, describe; and the registry of models.

It needs the extra `photos`.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from setnet.errors import MissingExtraError

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
    "KnownFile",
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
    "identify_file",
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
        KnownFile,
        add_model,
        add_model_file,
        identify_file,
        remove_model,
    )
else:
    # name: the module that defines it, imported on first use
    _MODULES = {
        "PRESETS": "settings",
        "Box": "face",
        "Descriptor": "descriptor",
        "Detections": "detector",
        "Detector": "detector",
        "Face": "face",
        "FaceSettings": "settings",
        "KnownFile": "user_models",
        "Metric": "metric",
        "ModelEntry": "registry",
        "ModelFile": "registry",
        "ModelStatus": "registry",
        "Photo": "photo",
        "Quality": "face",
        "StageTimes": "pipeline",
        "add_model": "user_models",
        "add_model_file": "user_models",
        "describe_faces": "pipeline",
        "extract_faces": "pipeline",
        "identify_file": "user_models",
        "load_descriptor": "sessions",
        "load_detector": "sessions",
        "model_entries": "registry",
        "model_entry": "registry",
        "model_paths": "registry",
        "models": "registry",
        "open_photo": "photo",
        "remove_model": "user_models",
    }

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return __all__
