"""Training: settings, presets, initialisation, the loop, the stages, checkpoints."""
