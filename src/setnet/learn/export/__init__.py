"""From training to run time: ONNX, heads, and calibration of the logistic score."""
