"""The faces of an Immich server, read and never written, in an index beside it."""
