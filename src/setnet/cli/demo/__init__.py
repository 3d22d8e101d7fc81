"""`setnet demo`: the whole road in one command."""
