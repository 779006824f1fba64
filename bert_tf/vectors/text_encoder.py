"""Encodes texts as vectors.

Shapes: E texts, D hidden size, W = D times the number of layers, K all tokens of all texts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.trained import Trained
from bert_tf.errors import FlagError
from bert_tf.features import sentences
from bert_tf.features.columns import Features, IntArray
from bert_tf.features.long_text import WINDOWS
from bert_tf.modeling.heads.vectors import OUTPUT
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.sentence.scores import averaged
from bert_tf.vectors.options import VectorOptions

Floats = npt.NDArray[np.float32]

_LEAST_LENGTH = 1e-12  # of a vector that is divided by its length


class Vectors(NamedTuple):
    values: Floats  # [E, W] of texts, or [K, W] of tokens in text order
    lengths: IntArray | None = None  # [E] tokens per text; None for text vectors
    pieces: Sequence[str] | None = None  # [K] tokens with special ones; None for text vectors


class TextEncoder:
    """A loaded model; must be closed."""

    def __init__(self, trained: Trained, inference: InferenceOptions, options: VectorOptions) -> None:
        """Loads the model without its head; FlagError for a missing layer, or for tokens of texts read in windows."""
        if options.tokens and trained.long_text == WINDOWS:
            raise FlagError(f"--long_text={WINDOWS}: a token is in several windows; give another, or leave --tokens out")
        self.truncated = 0
        self._trained = dataclasses.replace(trained, given_head=options.head(trained.config))
        self._options = options
        self._computer = inference.engine()
        self._computer.load(self._trained)

    def read(self, texts: Sequence[SentenceExample]) -> Features:
        """Makes features; can run in another thread beside `vectors`."""
        return sentences.build(
            ((text.text_a, text.text_b) for text in texts),
            None,
            self._trained.tokenizer,
            max_seq_length=self._trained.max_seq_length,
            long_text=self._trained.long_text,
        )

    def vectors(self, features: Features) -> Vectors:
        """A text in windows gets their mean; BertError if memory runs out or outputs are not finite."""
        self.truncated += features.truncated
        found = averaged(self._computer.outputs(features)[OUTPUT], None if self._options.tokens else features.example_ids)
        if self._options.normalize:
            lengths = np.linalg.norm(found.astype(np.float64), axis=1, keepdims=True)  # float32 has no room for some squares
            found = (found / np.maximum(lengths, _LEAST_LENGTH)).astype(np.float32)
        if not self._options.tokens:
            return Vectors(found)
        vocabulary = self._trained.vocabulary.tokens
        return Vectors(found, features.lengths, [vocabulary[piece] for piece in features.token_ids.tolist()])

    def lines(self, number: int, texts: Sequence[SentenceExample], features: Features, form: Any) -> bytes:
        del number
        return form.part(texts, self.vectors(features))  # type: ignore[no-any-return]

    def close(self) -> None:
        self._computer.close()
