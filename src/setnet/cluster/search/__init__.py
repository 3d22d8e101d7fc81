"""Asking all shards of a cluster and merging their answers into that of one index."""
