"""The people to look for: their names as people write them, and their portraits."""
