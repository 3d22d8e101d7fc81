"""Labelled descriptors, splits by identity, degraded copies and group photos."""
