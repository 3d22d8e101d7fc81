"""Models that a user adds: from wheels of other projects, or as files of their own."""
