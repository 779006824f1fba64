"""A pre-training: its second phase, in the same schedule as the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bert_tf.encoders import ENCODERS
from bert_tf.extensions.pretrain.settings import PretrainingSettings
from bert_tf.settings import setting_names
from bert_tf.tasks.base import TRAIN
from bert_tf.training.part import Part
from bert_tf.training.run import PhasePlan, Run
from bert_tf.training.run_spec import RunSpec

_SECOND = "phase2_"  # prefix of its settings


class Pretraining(Part):
    def within_positions(self, config: RunSpec, positions: int) -> RunSpec:
        length = f"{_SECOND}max_seq_length"
        if length in config.given or _settings(config).phase2_max_seq_length <= positions:
            return config
        return config.replaced({length: positions})

    def phases(self, run: Run, first: PhasePlan) -> Sequence[PhasePlan]:
        pretraining = _settings(run.spec)
        size, steps = pretraining.phase2_train_batch_size or first.batch_size, pretraining.phase2_num_train_steps
        return [PhasePlan(split, pretraining.phase2_max_seq_length, size, steps, _SECOND) for split in run.splits[TRAIN][1:]]

    def check(self, run: Run) -> Iterator[str]:
        settings, config = _settings(run.spec), run.config
        sampled = settings.sampled_softmax
        if settings.nsp and (ENCODERS[config.model_type].masked_words or run.vocabulary.separators > 1):
            yield f"--nsp: models of type {config.model_type} do not learn next sentences; add --nsp=false"
        _ = run.vocabulary.mask_id  # raises what is wrong
        if TRAIN in run.splits and sampled > run.config.vocab_size:
            yield f"--sampled_softmax={sampled}: the vocabulary has {run.config.vocab_size} words; 0 computes all of them"

    def repeated(self, run: Run) -> dict[str, Any]:
        """Without a second phase, its settings are refused."""
        names = setting_names(PretrainingSettings) if len(run.phases) == 1 else ()
        return {name: None for name in names if name.startswith(_SECOND)}


def _settings(config: RunSpec) -> PretrainingSettings:
    settings: PretrainingSettings = config.of_task.extensions.pretrain
    return settings
