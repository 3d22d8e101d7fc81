"""Training data: descriptor files, face crops, virtual people, and how batches are drawn."""
