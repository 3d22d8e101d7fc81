"""Worlds to search: items with known contents, and queries about them."""
