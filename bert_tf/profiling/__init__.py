"""Where time and memory went, and where they will go."""
