"""The data set: labels, split, statistics, queries, distractors, and how to read it."""
