"""Face tags of other programs: read from photos, sidecars and Picasa's files; written to sidecars."""
