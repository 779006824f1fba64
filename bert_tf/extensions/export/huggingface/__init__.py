"""Exports a folder for transformers and, for text vectors, sentence-transformers."""
