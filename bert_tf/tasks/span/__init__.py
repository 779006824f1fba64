"""Answers that are found in a text: SQuAD, and one's own questions."""
