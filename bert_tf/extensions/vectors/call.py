"""POST /encode: the vectors of texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bert_tf.errors import FlagError
from bert_tf.extensions.serve.call import ROWS, Call, Option, Part
from bert_tf.extensions.serve.settings import ServeConfig
from bert_tf.extensions.vectors.options import VectorOptions
from bert_tf.head_spec import CONTRASTIVE, SIMILARITY
from bert_tf.library.reading import Reader
from bert_tf.run_layout import NORMALIZE
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import USUAL

if TYPE_CHECKING:
    from bert_tf.extensions.serve.forms import Form, Schema
    from bert_tf.library.model import Model

_LEAST_LENGTH = 1e-12  # of a vector that is divided by its length
_TEXTS = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        {"type": "object", "description": "text, or text_a and text_b"},
    ]
}


class Encode(Call):
    """Offered by vector models, by others with --encode."""

    name, says, answer, key = "encode", "Embeds texts.", "Vector", "vectors"
    options: ClassVar[Mapping[str, Option]] = {
        NORMALIZE: Option((bool,), {"type": "boolean", "description": "scale to length 1; default: as the model does"})
    }
    remedy = "; start the service with --encode"
    loads_weights = True

    def is_offered(self, kind: str, config: ServeConfig) -> bool:
        vectors = config.extensions.vectors
        if vectors.encode or kind in (SIMILARITY, CONTRASTIVE):
            return True
        idle = [name for name, value in vars(VectorOptions()).items() if getattr(vectors.options, name) != value]
        if idle and len(config.runs) == 1:
            raise FlagError(f"--{idle[0]}: is for the vectors of POST /encode; add --encode")
        return False

    def reader(self, reader: Reader) -> Reader:
        """Accepts texts and text pairs whatever the model's task is."""
        columns = getattr(reader.family, "columns", USUAL)
        return dataclasses.replace(reader, family=SentenceFamily((), **dataclasses.asdict(columns)))

    def row(self, form: Form) -> Schema:
        del form
        return _TEXTS

    def example(self, form: Form) -> Mapping[str, Any]:
        del form
        return {ROWS: ["It arrived late."]}

    def schema(self, form: Form) -> Schema:
        del form
        return {"type": "array", "items": {"type": "number"}}

    def load(self, model: Model, config: ServeConfig) -> None:
        _encoded(model, ["a"], config)

    def answers(self, model: Model, parts: Sequence[Part], config: ServeConfig) -> list[list[bytes]]:
        texts = [example.texts for part in parts for example in part.examples]
        vectors = iter(_encoded(model, [text[0] if len(text) == 1 else text for text in texts], config))
        usual = bool(model.trained.record.get(NORMALIZE))
        return [[_as_json(next(vectors), part.options.get(NORMALIZE, usual)) for _ in part.examples] for part in parts]


def _encoded(model: Model, texts: Sequence[Any], config: ServeConfig) -> Any:
    options = config.extensions.vectors.options
    return model.encode(texts, pooling=options.pooling, layers=options.layers, normalize=False)


def _as_json(vector: Any, normalize: bool) -> bytes:
    if normalize:
        vector = vector / np.maximum(np.linalg.norm(vector), _LEAST_LENGTH)
    return f"[{','.join(map(str, vector))}]".encode()  # with enough digits to round-trip float32
