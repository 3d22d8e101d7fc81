"""Reads video files: packets and pictures with their times, and what a file says of itself."""
