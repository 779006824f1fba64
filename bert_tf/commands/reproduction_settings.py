"""What is asked of the reproduce command."""

from __future__ import annotations

from typing import NamedTuple

from bert_tf.reproduction.facts import Published


class Settings(NamedTuple):
    """The flags, and the run that they follow."""

    published: Published
    seeds: str
    output_dir: str
    bert_base_dir: str | None
    glue_dir: str | None
    gpu_memory_limit_mb: int | None
    published_layout: bool
    num_train_steps: int | None
