"""Apache Beam as an argument of calls."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Union

from bert_tf.cluster import paths
from bert_tf.errors import FlagError
from bert_tf.jobs.beam_job import Beam

Arguments = Union[bool, Sequence[str]]  # of Beam; True for none, False where it is not asked for
Written = Union[Path, str]  # a file; a text where it lies on another file system


def runner(beam: Arguments) -> Beam | None:
    """Returns how Beam runs a job, None if it does not; raises FlagError if the arguments are a single string."""
    if isinstance(beam, str):
        raise FlagError(f"--beam={beam!r}: expected a list of arguments")
    return None if beam is False else Beam(() if beam is True else tuple(beam), _begin_worker)


def written(names: Iterable[str]) -> tuple[Written, ...]:
    return tuple(name if paths.has_scheme(name) else Path(name) for name in names)


def _begin_worker() -> Mapping[str, str]:
    return os.environ
