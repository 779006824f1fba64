"""Encodes texts as vectors.

Shapes: E texts, D hidden size, W = D times the number of layers, K all tokens of all texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.batch.engine import InferenceOptions
from bert_tf.batch.session import Predictor, Session
from bert_tf.batch.trained import Trained
from bert_tf.errors import FlagError
from bert_tf.extensions.vectors.options import Layers, VectorOptions, layer_numbers
from bert_tf.features import sentences
from bert_tf.features.columns import Features, IntArray
from bert_tf.features.long_text import WINDOWS
from bert_tf.head_spec import VECTORS
from bert_tf.tasks.base import Outputs
from bert_tf.tasks.sentence.rows import SentenceExample, read_rows
from bert_tf.tasks.sentence.scores import averaged

Floats = npt.NDArray[np.float32]

_LEAST_LENGTH = 1e-12  # of a vector that is normalized


class Vectors(NamedTuple):
    values: Floats  # [E, W] of texts, or [K, W] of tokens in text order
    lengths: IntArray | None = None  # [E] tokens per text; None for text vectors
    pieces: Sequence[str] | None = None  # [K] tokens with special ones; None for text vectors


class TextEncoder(Session):
    """An encoder with fixed options, for files; must be closed."""

    def __init__(self, trained: Trained, inference: InferenceOptions, options: VectorOptions) -> None:
        """Loads the model without its head."""
        self.options, self.truncated = options.of_model(trained), 0
        super().__init__(_with_head(trained, self.options), inference)
        self.load_weights()

    def read(self, texts: Sequence[SentenceExample]) -> Features:
        """Makes features; can run in another thread beside `vectors`."""
        return _read(self.trained, texts)

    def vectors(self, features: Features) -> Vectors:
        self.truncated += features.truncated
        return _vectors(self.trained, self.options, features, self.outputs(features))

    def lines(self, number: int, texts: Sequence[SentenceExample], features: Features, form: Any) -> bytes:
        del number
        return form.part(texts, self.vectors(features))  # type: ignore[no-any-return]


class Encoder(Session):
    """A model that computes text vectors. Weights are loaded lazily; `close` frees them.

    Threads may share one encoder; they take turns.

        with bert_tf.encoder() as encoder:
            encoder.encode(["He left.", "He went away."], normalize=True)
    """

    _latest: tuple[VectorOptions, Trained] | None = None  # the model with the head of the latest call

    def encode(
        self,
        texts: Iterable[Any],
        *,
        pooling: str | None = None,
        layers: Layers = -1,
        normalize: bool | None = None,
        tokens: bool = False,
    ) -> Floats | list[Floats]:
        """Returns vectors of texts or of their tokens.

        Args:
          texts: N texts, or pairs (text, second text), which become one sequence.
          pooling: mean (over all tokens), cls or max; by default as the model was trained, else mean.
          layers: layers to concatenate, 0 the first and -1 the last; as -1, (-1, -2) or "-1,-2".
          normalize: whether vectors are scaled to length 1, so that dot products are cosines; by default as the model does.
          tokens: returns a vector for each token, special tokens included.

        Returns:
          [N, D] float32, D the hidden size times the number of layers; with `tokens` [T, D] for each text.

        Raises:
          DataError: a text has the wrong type.
          FlagError: unknown pooling or layer.
          ClosedError: the encoder was closed.
        """
        options = VectorOptions(pooling, layer_numbers(layers), normalize, tokens).of_model(self.trained)
        examples = read_rows(texts, "texts", kind=None)
        latest = self._latest
        if latest is None or latest[0] != options:
            latest = self._latest = options, _with_head(self.trained, options)
        trained = latest[1]
        features = _read(trained, examples)
        vectors = _vectors(trained, options, features, self.outputs(features, trained))
        if vectors.lengths is None:
            return vectors.values
        return np.split(vectors.values, np.cumsum(vectors.lengths)[:-1]) if examples else []

    def __repr__(self) -> str:
        return f"<bert_tf.Encoder {self.checkpoint}>"


def of_model(model: Predictor) -> Encoder:
    return Encoder(model.trained, model.inference, weights_of=model)


def _with_head(trained: Trained, options: VectorOptions) -> Trained:
    """Raises FlagError for a missing layer, or for tokens of texts read in windows."""
    if options.tokens and trained.long_text == WINDOWS:
        raise FlagError(f"--long_text={WINDOWS}: a token is in several windows; give another, or leave --tokens out")
    return trained.with_head(options.head(trained.config))


def _read(trained: Trained, texts: Sequence[SentenceExample]) -> Features:
    return sentences.build(
        ((text.text_a, text.text_b) for text in texts),
        None,
        trained.tokenizer,
        max_seq_length=trained.max_seq_length,
        long_text=trained.long_text,
    )


def _vectors(trained: Trained, options: VectorOptions, features: Features, outputs: Outputs) -> Vectors:
    """A text in windows gets their mean."""
    values = averaged(outputs[VECTORS], None if options.tokens else features.example_ids)
    if options.normalize:
        lengths = np.linalg.norm(values.astype(np.float64), axis=1, keepdims=True)  # some squares exceed float32
        values = (values / np.maximum(lengths, _LEAST_LENGTH)).astype(np.float32)
    if not options.tokens:
        return Vectors(values)
    vocabulary = trained.vocabulary.tokens
    return Vectors(values, features.lengths, [vocabulary[piece] for piece in features.token_ids.tolist()])
