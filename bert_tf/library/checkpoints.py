"""Inspecting, comparing and rewriting checkpoints, as calls."""

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
    """Lists what a checkpoint contains, reading one tensor at a time; as `python -m bert_tf checkpoint inspect`.

    Args:
      checkpoint: a prefix, a run (its best or newest checkpoint), or a Hugging Face folder.
      **settings: none.

    Raises:
      BertError: the checkpoint is missing or damaged.
    """
    named(SETTINGS["inspect"], settings)
    return checkpoint_inspect.inspect(checkpoint)


@takes(())
def diff_checkpoints(a: str | os.PathLike[str], b: str | os.PathLike[str], **settings: Any) -> Difference:
    """Measures the distance of two checkpoints; as `python -m bert_tf checkpoint diff`.

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
    """Writes the mean of checkpoints as a model that `load` takes; as `python -m bert_tf checkpoint average`.

        bert_tf.fine_tune("MRPC", output_dir="out/mrpc", save_checkpoints_steps=100)
        bert_tf.average_checkpoints("out/mrpc", last=3, output="out/mrpc/last3")

    Args:
      checkpoints: several checkpoints, or one run with `last` or `best`.
      **settings: the command's flags, by name.

    Returns:
      The folder of the model.

    Raises:
      BertError: invalid settings or input.
    """
    values = values_of(SETTINGS["average"], settings)
    names = [checkpoints] if isinstance(checkpoints, (str, os.PathLike)) else list(checkpoints)
    return checkpoint_average.average(names, values).output


@takes(SETTINGS["strip"])
def strip_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a checkpoint without training state; as `python -m bert_tf checkpoint strip`.

    Args:
      checkpoint: a prefix, or a run (its best or newest checkpoint).
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return checkpoint_rewrite.strip(checkpoint, values_of(SETTINGS["strip"], settings))


@takes(SETTINGS["convert"])
def convert_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a model in another layout; as `python -m bert_tf checkpoint convert`.

    Args:
      checkpoint: a prefix, a run (its best or newest checkpoint), or a Hugging Face folder.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return checkpoint_rewrite.convert(checkpoint, values_of(SETTINGS["convert"], settings))


@takes(SETTINGS["rename"])
def rename_checkpoint(checkpoint: str | os.PathLike[str], **settings: Any) -> Written:
    """Writes a checkpoint with renamed variables, or lists the new names; as `python -m bert_tf checkpoint rename`.

    Args:
      checkpoint: a prefix, or a run (its best or newest checkpoint).
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    return checkpoint_rewrite.rename(checkpoint, values_of(SETTINGS["rename"], settings))
