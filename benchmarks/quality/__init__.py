"""Compares trained quality with transformers, seed by seed: python -m benchmarks.quality

Both sides start from the same weights, the new head included, and take the same batches at the same rates; dropout
has random numbers of its own on each side. Both train on our features, and our family turns the logits of both into
predictions and metrics: only the training is compared.
"""
