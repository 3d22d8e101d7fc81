"""Trainable networks: backbones, aggregators, losses, whitening, and their files."""
