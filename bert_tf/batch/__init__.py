"""Jobs of many checkpoints or many files: one process, one graph."""
