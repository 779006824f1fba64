"""Pretrained and trained weights, in and out."""
