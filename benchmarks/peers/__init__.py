"""Benchmark workers of other libraries; each runs in a virtual environment of its own, without this package."""
