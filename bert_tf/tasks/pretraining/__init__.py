"""Pre-training on unlabelled text: masked words and next sentence prediction."""
