"""Experiments on single faces: who is identified, and how orthogonal descriptors are."""
