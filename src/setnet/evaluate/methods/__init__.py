"""The methods under comparison, each with a calibrated score."""
