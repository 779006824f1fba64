"""Jobs on many checkpoints or files: one process, one graph."""
