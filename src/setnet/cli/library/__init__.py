"""Commands for a photo library."""
