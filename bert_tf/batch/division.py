"""Divides work between processes by exclusive claims on pieces."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import AbstractContextManager
from typing import TypeVar

from bert_tf.log_form import log

T = TypeVar("T")
Claim = Callable[..., "AbstractContextManager[str | None]"]  # see `divided`


def divided(pieces: Iterable[T], claim: Claim, shared: Callable[[T], Hashable]) -> Generator[T, None, None]:
    """Yields each piece while this process holds its claim; those of others come last, once done or abandoned.

    Claims of a killed process are released, so a last process gets all remaining pieces. The caller must check whether another
    process has done the piece meanwhile, and close the generator to give up the claim. `claim` yields None, or the other
    holder (`wait=True` waits for it). `shared` is the preparation a piece needs: while another process works on a piece with
    the same preparation, its other pieces are left to it as long as others remain.
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
