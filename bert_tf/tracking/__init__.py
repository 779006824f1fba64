"""Sends the settings, metrics and files of runs to experiment trackers: MLflow, Weights & Biases, TensorBoard."""
