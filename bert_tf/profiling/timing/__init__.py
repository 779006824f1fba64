"""Step times, their diagnosis, and ranges of steps to profile."""
