"""When files are damaged or lost: repair from the segments, backups, restoring."""
