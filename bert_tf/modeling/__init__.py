"""From batches to logits."""
