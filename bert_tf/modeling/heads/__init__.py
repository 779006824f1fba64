"""Task heads: outputs, losses and memory cost on top of the encoder."""
