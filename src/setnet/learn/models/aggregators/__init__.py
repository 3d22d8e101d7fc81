"""Set aggregators: NetVLAD, the paper's baselines, and untrained alternatives."""
