"""Photos that are dropped: without the names, with too few faces, or there twice."""
