"""The people of a shot: faces followed from look to look, and one element for each person."""
