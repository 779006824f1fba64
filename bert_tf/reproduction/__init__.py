"""Published figures of a run, figures of a run here, and their comparison."""
