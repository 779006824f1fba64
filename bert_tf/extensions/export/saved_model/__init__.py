"""Exports TensorFlow's own format, for TensorFlow Serving and for programs that only have TensorFlow."""
