"""As `preloaded`, for workers of an exported model: they compute without TensorFlow, and share the memory of its weights."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

from bert_tf.checkpoints import model_formats
from bert_tf.extensions.serve import worker as worker  # of the workers
from bert_tf.extensions.serve.workers import MODEL_OF_ENGINE
from bert_tf.library import loading


def share(folder: str) -> None:
    """Opens the model before the workers are forked; what is wrong with it is their message.

    A session with a pool of threads does not survive the fork: only those of one thread are shared.
    """
    with contextlib.suppress(Exception):
        model = loading.load(folder)  # its vocabulary stays
        file = Path(model.checkpoint)
        model_formats.of(file).share(file)  # type: ignore[union-attr]


if MODEL_OF_ENGINE in os.environ:
    share(os.environ[MODEL_OF_ENGINE])
gc.collect()
gc.freeze()  # imported modules stay, and workers share their pages
