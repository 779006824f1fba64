"""What trainings reach beside those of transformers, seed by seed: python -m benchmarks.quality

Both sides begin with the same weights, the new head among them, and take the same batches at the same rates; they drop out by
random numbers of their own. Both train on our features, and our family turns the logits of both into predictions and metrics:
what is compared is the training.
"""
