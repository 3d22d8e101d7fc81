"""Opens ONNX files in onnxruntime, each once per process."""

from __future__ import annotations

import os
import threading
from functools import cache
from pathlib import Path
from typing import Any

from setnet.errors import ModelError
from setnet.faces.registry.onnx_graph import ready_to_run

_LOCK = threading.Lock()


def open_session(path: Path) -> Any:
    """Return the onnxruntime session of a model file, with one thread: photos are spread over processes."""
    with _LOCK:
        return _session(str(path), path.stat().st_mtime_ns)


@cache
def _session(path: str, changed: int) -> Any:
    # Some releases send usage data to their maker unless this is set before the import.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Its own memory pool never gives back what the largest photo needed, and is no faster here.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = 3  # its warnings are about the exporter, which users cannot change
    # Weight-only quantised files: expand the weights at load, not again in each run.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    try:
        model = ready_to_run(Path(path).read_bytes())
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    except Exception as error:  # onnxruntime has no common base of its errors
        raise ModelError(f"{path}: onnxruntime cannot run this model: {error}") from error
