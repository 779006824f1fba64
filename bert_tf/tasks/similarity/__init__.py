"""Vectors of texts: pairs with a score of how alike they are, or pairs that belong together."""
