"""Saved people that can be mended: names, example faces, verdicts on matches, and a journal with undo."""
