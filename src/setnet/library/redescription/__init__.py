"""Describes the known faces of a library by another model; the result takes the place of the old ones."""
