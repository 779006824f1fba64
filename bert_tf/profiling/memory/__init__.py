"""The memory of one step: traces of what it puts out, and what is alive at a time."""
