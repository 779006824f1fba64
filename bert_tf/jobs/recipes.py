"""Hyper-parameters for the default checkpoint, where the user gives none.

The published defaults suit BERT-Base and Large. The default checkpoint has 22 M parameters; its figures on MRPC (README,
"Measured") are for small batches, and without bias correction it hardly trains at a rate of 1e-4. The bundled sample has few
examples: it wants more epochs, and what keeps a model from learning them by heart, so that seeds differ less. Its values were
chosen by mean and spread over ten seeds (benchmarks/accuracy.md). A checkpoint that the user names gets the published defaults.
"""

from __future__ import annotations

from collections.abc import Mapping

from bert_tf.jobs.fine_tune_config import FineTuneConfig

_ON_TASK_DATA: Mapping[str, float | str] = {"learning_rate": 5e-5, "train_batch_size": 12, "adam_bias_correction": True}
_ON_SAMPLE: Mapping[str, float | str] = {
    **_ON_TASK_DATA,
    "learning_rate": 8e-5,
    "train_batch_size": 8,
    "num_train_epochs": 6.0,
    "max_seq_length": 64,
    "freeze": "embeddings,0-1",
    "label_smoothing": 0.1,
}


def apply(
    settings: FineTuneConfig, *, default_checkpoint: bool, sample_data: bool
) -> tuple[FineTuneConfig, dict[str, float | str]]:
    """Fills in what the command line leaves open.

    Args:
      settings: of the command line.
      default_checkpoint: whether it starts from that.
      sample_data: whether it trains on the bundled sample.

    Returns:
      The settings, and the values that came from the recipe.
    """
    recipe = (_ON_SAMPLE if sample_data else _ON_TASK_DATA) if default_checkpoint else {}
    decided = settings.given | ({"num_train_epochs"} if settings.train.num_train_steps else set())
    chosen = {name: value for name, value in recipe.items() if name not in decided}
    return settings.replaced(chosen), chosen
