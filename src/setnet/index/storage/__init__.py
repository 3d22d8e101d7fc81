"""Items on disk: the catalogue, immutable segment files, one writer, consistent snapshots."""
