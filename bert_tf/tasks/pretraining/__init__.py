"""Masked words, and whether one text follows another: what is learned of text without labels."""
