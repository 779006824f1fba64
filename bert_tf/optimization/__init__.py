"""A loss becomes an update."""
