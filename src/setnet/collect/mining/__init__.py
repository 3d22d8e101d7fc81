"""Pairs of people who are together, and the photos of each pair."""
