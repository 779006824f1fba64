"""Vectors of texts: encoded, written in several formats, searched."""
