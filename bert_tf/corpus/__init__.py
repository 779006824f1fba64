"""Text to pre-train on: documents, the tokens of all of them on disk, rows of these, masks, and shards of masked rows."""
