"""The groups of a library as users see them: listed, named, hidden, suggested."""
