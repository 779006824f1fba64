"""Extractive question answering: SQuAD, and custom data."""
