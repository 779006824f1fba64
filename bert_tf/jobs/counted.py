"""Numbers of things, as messages name them."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """Returns a number and what it counts: "1 word", "2,000 words".

    Args:
      number: how many.
      thing: one of them; its plural has an s.
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
