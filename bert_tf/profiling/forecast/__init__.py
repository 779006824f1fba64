"""Forecast of the memory that a step will take, and of what fits."""
