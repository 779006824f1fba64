"""Time and memory of training: measured and forecast."""
