"""The model registry: entries, checked files, ONNX sessions."""
