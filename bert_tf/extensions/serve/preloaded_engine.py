"""As `preloaded`, for workers of an exported model: they compute without TensorFlow, and share the memory of its weights."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

import bert_tf
from bert_tf.engines import exported as exported  # of the workers, as the next two
from bert_tf.engines import onnxruntime_session
from bert_tf.extensions.serve import worker as worker
from bert_tf.extensions.serve.workers import MODEL_OF_ENGINE


def share(folder: str) -> None:
    """Opens the model before the workers are forked; what is wrong with it is their message."""
    with contextlib.suppress(Exception):
        model = bert_tf.load(folder)  # its vocabulary stays
        onnxruntime_session.share(Path(model.checkpoint))


if MODEL_OF_ENGINE in os.environ:
    share(os.environ[MODEL_OF_ENGINE])
gc.collect()
gc.freeze()  # imported modules stay, and workers share their pages
