"""The error of a model that was closed."""

from __future__ import annotations

from bert_tf.errors import BertError


class ClosedError(BertError):
    """The model was closed."""
