"""What a cluster keeps on shared storage: its file, fenced writers, published versions."""
