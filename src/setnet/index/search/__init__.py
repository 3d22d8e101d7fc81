"""A query over a snapshot: conditions, the scan, re-ranking and modes."""
