"""From a loss to an update."""
