"""From examples and a tokenizer to fixed-size features."""
