"""Text to pre-train on becomes tokens on disk, rows, masks and shards."""
