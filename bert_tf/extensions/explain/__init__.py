"""Explain: how much each word of a text contributed to a prediction (docs/explain.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    session=f"{__name__}.explainer:of_model",
    call=f"{__name__}.call:Explain",
    commands={
        "explain": NewCommand(
            f"{__name__}.command:COMMAND",
            "Train, evaluate, predict",
            "shows how much each word contributed to a prediction",
            computes=True,
        )
    },
)
