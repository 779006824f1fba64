"""Evaluate: many checkpoints on many data sets, in one table (docs/batch_jobs.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "evaluate": NewCommand(
            f"{__name__}.command:COMMAND",
            "Train, evaluate, predict",
            "evaluates many checkpoints on many data sets, in one table",
            computes=True,
        )
    }
)
