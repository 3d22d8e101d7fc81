"""Segment files: immutable arrays of items, written once, verified when they are read."""
