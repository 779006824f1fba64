"""Examples and a tokenizer become fixed-size features."""
