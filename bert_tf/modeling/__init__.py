"""Batches become logits."""
