"""Groups of faces that are probably of one person each: found, kept, named and suggested."""
