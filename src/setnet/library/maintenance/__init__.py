"""Care of a library as a whole: creating, checking, forgetting, backups and repair."""
