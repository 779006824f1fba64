"""Sentence embeddings: pairs with a similarity score, or matching pairs."""
