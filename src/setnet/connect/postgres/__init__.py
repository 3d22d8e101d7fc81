"""Items that are sets of vectors in a user's own PostgreSQL, found by their set vectors."""
