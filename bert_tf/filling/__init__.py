"""Fills in [MASK]: masked texts and the words that a model predicts."""
