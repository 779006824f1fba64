"""scikit-learn: estimators for texts and pairs of texts (docs/library.md)."""

from bert_tf.extension import Extension

EXTENSION = Extension()  # its classes are names of the library
