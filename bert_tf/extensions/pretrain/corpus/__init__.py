"""Turns pre-training text into tokens on disk, rows, masks and shards."""
