"""Time and memory: where they went, and where they will go."""
