"""From examples and a tokenizer to fixed-size features, their batches and their cache."""
