"""What a running server holds: the library, uploads, worker processes, index runs."""
