"""Features become batches."""
