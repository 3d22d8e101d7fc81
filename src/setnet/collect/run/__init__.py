"""What a run keeps: its settings, its steps and a manifest of each."""
