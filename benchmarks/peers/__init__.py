"""Benchmark workers of other libraries; each runs in its own virtual environment, without this package."""
