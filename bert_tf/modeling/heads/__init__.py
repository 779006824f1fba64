"""Task heads: what the encoder's vectors become, and what that costs."""
