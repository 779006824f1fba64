"""Forecast of a step's memory, and of what fits."""
