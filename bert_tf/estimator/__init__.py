"""Brings the rooms together; the only package that imports tf.estimator."""
