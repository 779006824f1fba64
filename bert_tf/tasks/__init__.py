"""What is to be learned: examples, labels, head and metrics of each task."""
