"""The HTTP server: limits, access control, errors, metrics."""
