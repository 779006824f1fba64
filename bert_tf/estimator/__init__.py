"""Brings the rooms together; `api` chooses the Estimator of the installed TensorFlow."""
