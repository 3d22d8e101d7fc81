"""Guided fuzzing needs Atheris and starts from `__main__`: no test."""

collect_ignore = ["guided.py"]
