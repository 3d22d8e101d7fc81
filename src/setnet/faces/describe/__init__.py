"""From a detected face to its descriptor: alignment, quality, inference."""
