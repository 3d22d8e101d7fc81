"""Elements and their neighbours: who is near whom, and clusters of elements that belong together."""
