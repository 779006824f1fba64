"""Memory plan: whether a training fits into a GPU's memory, and the cheapest settings that do (docs/memory.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    commands={
        "memory": NewCommand(
            f"{__name__}.command:MEMORY", "Data and machine", "forecasts the memory of training (memory plan)"
        ),
        "memory plan": NewCommand(f"{__name__}.command:PLAN"),
    },
    remedies=f"{__name__}.search:remedies",
)
