"""Converts features to batches."""
