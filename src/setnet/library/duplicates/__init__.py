"""Near-duplicates: copies of one photograph that were resized, cropped, recompressed, recoloured or mirrored."""
