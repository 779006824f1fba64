"""Configuration of a reproduction."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf.errors import FlagError, unknown_name
from bert_tf.jobs.settings import seed_numbers
from bert_tf.reproduction.facts import RUNS, Published
from bert_tf.settings import named, setting, settings_of


@dataclasses.dataclass(frozen=True)
class ReproduceConfig:
    published: Published
    seeds: str = setting("1", "which to train: 1-5, or 1,3,7-9; the published run is one draw")
    output_dir: str | None = setting(None, "folder of reproduction.md and .json, and of the run of each seed; else out/RUN")
    bert_base_dir: str | None = setting(None, "folder of the checkpoint; else $BERT_BASE_DIR, the default checkpoint")
    glue_dir: str | None = setting(None, "folder that holds MRPC; else $GLUE_DIR, data/, the sample")
    gpu_memory_limit_mb: int | None = setting(
        None, "memory for tensors on the GPU, in MiB; else the published, on a larger GPU", lowest=1
    )
    published_layout: bool = setting(False, "compute as the published script, padding included")
    num_train_steps: int | None = setting(
        None, "train for fewer steps, to try it; what depends on the length is not compared", lowest=1
    )

    @property
    def folder(self) -> str:
        return self.output_dir or f"out/{self.published.name}"


SETTINGS = tuple(settings_of(ReproduceConfig))


def configured(run: str | None, **values: Any) -> ReproduceConfig:
    given = named(SETTINGS, values)
    if not run:
        raise FlagError(f"name the run to reproduce: {', '.join(RUNS)}")
    if run not in RUNS:
        raise FlagError(unknown_name("run", run, RUNS))
    config = ReproduceConfig(RUNS[run], **given)
    seed_numbers(config.seeds)
    return config
