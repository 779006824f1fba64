"""Sentences and pairs that have one of several classes, a number, or any of several labels."""
