"""Where photos with texts come from: files beside photos, data inside them, and a search index."""
