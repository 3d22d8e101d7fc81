"""Experiments that are not the paper's: run from a clone, such as ``python -m studies.grouping --help``."""
