"""Explains predictions: how much each word contributed to an output of the model."""
