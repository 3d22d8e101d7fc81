"""The server of trials is a program of its own, not a test."""

collect_ignore = ["fork_server.py"]
