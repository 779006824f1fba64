"""The machine: the only package that touches tf.config and ConfigProto."""
