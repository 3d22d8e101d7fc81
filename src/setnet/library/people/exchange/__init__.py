"""People as a file: written by one library, read by another."""
