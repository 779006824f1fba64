"""What several models in one graph compute once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Once:
    """Computes each stage of a model by itself; an extension may share stages between models."""

    def __call__(self, stage: str | int, reads: Any, make: Callable[[], T]) -> T:
        """Returns what `make` builds from the stages before: "embeddings", "positions", "projection", or a layer by number.

        `reads` are the tokens that the last layer computes, None for other stages.
        """
        del stage, reads
        return make()


EACH = Once()
