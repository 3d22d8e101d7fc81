"""Searches over more than one store: candidates of an index, and items fetched from elsewhere."""
