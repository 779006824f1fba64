"""Checkpoints as things to look into, compare and write anew, as calls."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bert_tf.jobs import checkpoint_average, checkpoint_diff, checkpoint_inspect, checkpoint_rewrite
from bert_tf.jobs.checkpoint_diff import Difference
from bert_tf.jobs.checkpoint_inspect import Inspected
from bert_tf.jobs.checkpoint_rewrite import Written
from bert_tf.jobs.checkpoint_settings import SETTINGS
from bert_tf.library.keywords import takes, values_of
from bert_tf.settings import named


@takes(SETTINGS["inspect"])
def inspect_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Inspected:
    """Says what is in a checkpoint, read one tensor at a time; as `python -m bert_tf checkpoint inspect`.

    Args:
      checkpoint: a prefix, a run for its best or newest, or a Hugging Face folder.
      **settings: none.

    Raises:
      BertError: there is none, or it is damaged.
    """
    named(SETTINGS["inspect"], settings)
    return checkpoint_inspect.inspect(checkpoint)


@takes(())
def diff_checkpoints(a: str | os.PathLike[str], b: str | os.PathLike[str], **settings: Any) -> Difference:
    """Says how far two checkpoints are from each other; as `python -m bert_tf checkpoint diff`.

    Args:
      a: the first.
      b: the second.
      **settings: none.

    Raises:
      BertError: one is missing or damaged.
    """
    named((), settings)
    return checkpoint_diff.diff(a, b)


@takes(SETTINGS["average"])
def average_checkpoints(checkpoints: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **settings: Any) -> Path:
    """Writes the mean of checkpoints as a model, which `load` takes; as `python -m bert_tf checkpoint average`.

        bert_tf.fine_tune("MRPC", output_dir="out/mrpc", save_checkpoints_steps=100)
        bert_tf.average_checkpoints("out/mrpc", last=3, output="out/mrpc/last3")

    Args:
      checkpoints: several; or one run, with `last` or `best`.
      **settings: those of the command, by the names of its flags.

    Returns:
      The folder of the model.

    Raises:
      BertError: something that the caller can fix.
    """
    values = values_of(SETTINGS["average"], settings)
    names = [checkpoints] if isinstance(checkpoints, (str, os.PathLike)) else list(checkpoints)
    return checkpoint_average.average(names, values).output


@takes(SETTINGS["strip"])
def strip_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a checkpoint without what only training needs; as `python -m bert_tf checkpoint strip`.

    Args:
      checkpoint: a prefix, or a run for its best or newest.
      **settings: those of the command, by the names of its flags.

    Raises:
      BertError: something that the caller can fix.
    """
    return checkpoint_rewrite.strip(checkpoint, values_of(SETTINGS["strip"], settings))


@takes(SETTINGS["convert"])
def convert_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a model in another layout; as `python -m bert_tf checkpoint convert`.

    Args:
      checkpoint: a prefix, a run for its best or newest, or a Hugging Face folder.
      **settings: those of the command, by the names of its flags.

    Raises:
      BertError: something that the caller can fix.
    """
    return checkpoint_rewrite.convert(checkpoint, values_of(SETTINGS["convert"], settings))


@takes(SETTINGS["rename"])
def rename_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a checkpoint with other names, or says which; as `python -m bert_tf checkpoint rename`.

    Args:
      checkpoint: a prefix, or a run for its best or newest.
      **settings: those of the command, by the names of its flags.

    Raises:
      BertError: something that the caller can fix.
    """
    return checkpoint_rewrite.rename(checkpoint, values_of(SETTINGS["rename"], settings))
