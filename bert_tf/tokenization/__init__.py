"""Text to word pieces."""
