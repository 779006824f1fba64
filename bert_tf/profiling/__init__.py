"""Where time and memory went."""
