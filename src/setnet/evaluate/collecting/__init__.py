"""How well `setnet collect` does: an archive of LFW pictures with captions, and what is made of it."""
