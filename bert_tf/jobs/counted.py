"""Formats counts for messages."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """1 word, 2,000 words: the plural adds an s."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
