"""Training, evaluation and prediction with an Estimator; `api` picks the one for the installed TensorFlow."""
