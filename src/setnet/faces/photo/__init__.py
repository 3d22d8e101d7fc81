"""Opening photos: formats, orientation, pixels."""
