"""The configuration of a search among vectors, made of settings by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from bert_tf.errors import FlagError
from bert_tf.jobs.batch_settings import MACHINE, divided
from bert_tf.jobs.encode_config import BATCH_SIZE
from bert_tf.jobs.machine_settings import MachineSettings
from bert_tf.settings import Setting, named

QUERIES = Setting("queries", str, None, "the same of each text of a file, as --input of encode; - is a pipe")
_TOP = Setting("top", int, 10, "how many", 1)
SETTINGS = (
    Setting("index", str, None, "vectors that encode wrote: .npz, .parquet or .npy"),
    Setting("query", str, None, "text whose nearest texts are wanted"),
    QUERIES,
    _TOP,
    Setting("texts", str, None, "file that an .npy was encoded from, which does not hold its texts"),
    Setting("checkpoint", str, None, "what encodes the query, where it is no longer where the index says"),
    BATCH_SIZE,
    *MACHINE,
)


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """What to look for, and where.

    Attributes:
      index: file of vectors.
      query: a text; None where there is a file of them, or they are in memory.
      queries: a file of texts, or texts.
      top: how many are wanted.
      texts: file of the texts of an .npy.
      checkpoint: what encodes queries; None for what the index says.
      batch_size: texts at a time.
      machine: on what to compute.
    """

    index: str
    query: str | None
    queries: str | Sequence[Any] | None
    top: int
    texts: str | None
    checkpoint: str | None
    batch_size: int | None
    machine: MachineSettings


def configured(**values: Any) -> SearchConfig:
    """Makes a configuration of settings by name.

    Args:
      **values: the settings that are given, None for those that are not; `queries` may be texts.

    Raises:
      FlagError: a setting is unknown, missing or has an unusable value.
    """
    in_memory = values.get(QUERIES.name)
    in_memory = list(in_memory) if isinstance(in_memory, (list, tuple)) else None
    if in_memory is not None:
        values = {name: value for name, value in values.items() if name != QUERIES.name}
    keys, machine = divided(named(SETTINGS, values))
    if in_memory is not None:
        keys[QUERIES.name] = in_memory
    if "index" not in keys:
        raise FlagError("--index is required")
    if ("query" in keys) == (QUERIES.name in keys):
        raise FlagError("--query or --queries is required, and one of them alone")
    given = {row.name: keys.get(row.name, row.default) for row in SETTINGS if row not in MACHINE}
    return SearchConfig(**given, machine=machine)
