"""A folder that transformers, and for vectors sentence-transformers, loads."""
