"""Training, evaluation and prediction with an Estimator; `api` selects that of the installed TensorFlow."""
