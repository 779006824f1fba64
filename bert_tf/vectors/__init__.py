"""Embeddings of texts: encode, write in several formats, search."""
