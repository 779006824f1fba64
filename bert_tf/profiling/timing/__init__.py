"""The times of steps, what they say, and ranges of steps that are looked at."""
