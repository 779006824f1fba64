"""Work that several processes divide, piece by piece, by claims that only one of them can hold."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import AbstractContextManager
from typing import TypeVar

from bert_tf.log_form import log

T = TypeVar("T")
Claim = Callable[..., "AbstractContextManager[str | None]"]  # see `divided`


def divided(pieces: Iterable[T], claim: Claim, shared: Callable[[T], Hashable]) -> Generator[T, None, None]:
    """Yields each piece while this process has claimed it; what others are at comes last, when they have done it or are gone.

    What a killed process had claimed is free again, so that one process that is left is given all that is left. Who takes a
    piece looks whether another has done it by then. To be closed, which gives up the claim.

    Args:
      pieces: in the order to be done in.
      claim: takes a piece, and with `wait=True` waits for it; a block that gets None, or who else has claimed it.
      shared: what has to be made ready for a piece. Where another process is at one of the pieces that share it, the others are
        left to it as long as there are more.
    """
    theirs: set[Hashable] = set()
    left, waiting = [], {}
    for piece in pieces:
        if shared(piece) not in theirs:
            with claim(piece) as other:
                if other is None:
                    yield piece
                    continue
            theirs.add(shared(piece))
        left.append(piece)
    for piece in left:
        with claim(piece) as other:
            if other is None:
                yield piece
            else:
                waiting[piece] = other
    for piece, other in waiting.items():
        log.info("%s: %s; waiting for it", piece, other)
    for piece in waiting:
        with claim(piece, wait=True):
            yield piece
