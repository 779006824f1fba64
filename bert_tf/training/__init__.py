"""From settings to a trained model and its results; finding models and data, and the machine of other commands."""
