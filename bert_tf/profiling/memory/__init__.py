"""Memory of one step: traces of outputs, and live memory over time."""
