"""What several benchmarks share: worlds, peers, turns, and the pages that results go to."""
