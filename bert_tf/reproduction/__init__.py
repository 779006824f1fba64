"""What was published about a run, what a run here gives, and how they compare."""
