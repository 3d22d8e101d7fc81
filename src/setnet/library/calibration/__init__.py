"""What similarities mean in a library: constants fitted to labelled faces, and kept with it."""
