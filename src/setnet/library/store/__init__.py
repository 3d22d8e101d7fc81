"""What a library keeps: its database of photos, faces and people, and the paths of its files."""
