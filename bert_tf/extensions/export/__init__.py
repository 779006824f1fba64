"""Export: trained models for other software, and exported folders as models, without TensorFlow (docs/export.md)."""

from bert_tf.extension import Extension, NewCommand

EXTENSION = Extension(
    session=f"{__name__}.write:Exporter",
    model_format=f"{__name__}.model_format:ONNX",
    commands={
        "export": NewCommand(
            f"{__name__}.command:COMMAND",
            "Use elsewhere",
            "exports a trained model to other formats, such as SavedModel or ONNX",
            computes=True,
        )
    },
)
