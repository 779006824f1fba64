"""TensorFlow's own format, for TensorFlow Serving and for programs that have TensorFlow alone."""
