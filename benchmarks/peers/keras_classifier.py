"""Shared code of the workers with Keras classifiers, padded to the full length."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from protocol import WorkerError, measured, peak_rss_mb, read_texts, timed


class Library(NamedTuple):
    """How a library does its part."""

    name: str
    versions: Mapping[str, str]
    encode: Callable[..., dict[str, np.ndarray]]  # padded features of texts, for a workload
    ids: str  # name of the token id feature
    mask: str  # name of the feature that masks real tokens
    load: Callable[..., Any]  # compiled model of a workload, with logits as output
    batches: Callable[[tf.data.Dataset], Any] = lambda batches: batches  # input of `fit`, from an endless dataset of batches


def unpadded(ids, mask):
    return [row[real.astype(bool)].tolist() for row, real in zip(ids, mask)]


def work(library, workload, channel):
    if workload.suite == "features" or (workload.suite == "train" and workload.way != "max"):
        raise WorkerError(f"{library.name} pads to the full length only; not measured in {workload.suite} {workload.way}")
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(workload.threads)  # read when TensorFlow first computes
    texts = read_texts(workload.texts)
    features, labels = library.encode(texts, workload), np.array(texts.labels)
    model = library.load(workload)
    if workload.suite == "predict":

        def run(passes):
            return timed(passes, lambda: model.predict(features, batch_size=workload.batch_size, verbose=0), len(labels))

    else:
        run = _trainer(model, library, features, labels, workload)
    if workload.suite == "start":
        run(1)
        channel.send({"first_step": True, "peak_rss_mb": peak_rss_mb()})
        return

    def check(count):
        few = {name: value[:count] for name, value in features.items()}
        loss = _evaluation_loss(model, few, labels[:count])
        return {"ids": unpadded(few[library.ids], few[library.mask]), "loss": loss}

    channel.ready(library.versions)
    channel.serve({"check": check, "run": run})


def _evaluation_loss(model, features, labels):
    logits = model.predict(features, batch_size=len(labels), verbose=0)
    return float(np.mean(np.logaddexp.reduce(logits, -1) - logits[np.arange(len(labels)), labels]))


def _trainer(model, library, features, labels, workload):
    """Returns a function that takes steps; its loss is their mean, which is what Keras keeps."""
    data = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(len(labels), seed=workload.seed).repeat()
    batches = library.batches(data.batch(workload.batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE))

    def run(steps):
        began = time.perf_counter()
        loss = model.fit(batches, steps_per_epoch=steps, verbose=0).history["loss"][-1]
        return measured(time.perf_counter() - began, steps * workload.batch_size, loss)

    return run
