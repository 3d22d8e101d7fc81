"""Commands for training and evaluation."""
