"""Vectors: embeds texts of files, programs and data frames, and finds the nearest by cosine (docs/vectors.md)."""

from bert_tf.extension import Extension, NewCommand, NewKind
from bert_tf.extensions.vectors.options import ServedVectors
from bert_tf.head_spec import VECTORS

_GROUP = "Vectors of texts"

EXTENSION = Extension(
    session=f"{__name__}.text_encoder:of_model",
    call=f"{__name__}.call:Encode",
    serving=ServedVectors,
    kinds={
        VECTORS: NewKind(
            head=f"{__name__}.head:VectorsHead",
            nodes=f"{__name__}.nodes:of_vectors",
            client=f"{__name__}.client:embedded",
        )
    },
    commands={
        "encode": NewCommand(
            f"{__name__}.encode:COMMAND", _GROUP, "embeds texts from files or pipes of any length", computes=True
        ),
        "search": NewCommand(
            f"{__name__}.search:COMMAND", _GROUP, "finds the nearest texts by cosine in vectors written by encode"
        ),
    },
)
