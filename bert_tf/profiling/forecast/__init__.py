"""How much memory a step will take, and what fits."""
