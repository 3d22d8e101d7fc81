"""Near-duplicates: copies of one photograph, resized, cropped, recompressed, recoloured or mirrored."""
