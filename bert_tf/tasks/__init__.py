"""Tasks: examples, labels, head and metrics of each."""
