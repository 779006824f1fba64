"""Worker: keras-hub's BERT classifier, padded to the full length; TensorFlow with XLA is its fastest backend on a CPU."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from protocol import WorkerError, measured, peak_rss_mb, read_texts, require_known, run_worker

os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import keras_hub

VERSIONS = {module.__name__: module.__version__ for module in (keras_hub, keras, tf)}


class WarmUpDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak and falls linearly to 0."""

    def __init__(self, peak, warmup_steps, total_steps):
        """Keeps the highest rate, how long it rises and when it is 0 again."""
        self._peak, self._warmup_steps, self._total_steps = peak, warmup_steps, total_steps

    def __call__(self, step):
        """Returns the rate of a step."""
        done = keras.ops.cast(step, "float32")
        rising = done / max(self._warmup_steps, 1)
        falling = (self._total_steps - done) / max(self._total_steps - self._warmup_steps, 1)
        return self._peak * keras.ops.maximum(keras.ops.where(done < self._warmup_steps, rising, falling), 0.0)


def load_model(workload):
    """Builds the classifier; its last layer is the one that every worker has."""
    keras.utils.set_random_seed(workload.seed)
    config = json.loads((Path(workload.weights) / "config.json").read_text(encoding="utf-8"))
    backbone = keras_hub.models.BertBackbone.from_preset(
        workload.weights, load_weights=not workload.random_weights, dropout=config["hidden_dropout_prob"]
    )
    if config["hidden_act"] == "gelu":
        for index in range(backbone.num_layers):
            # keras-hub has the approximation whatever the file says.
            layer = backbone.get_layer(f"transformer_layer_{index}")
            layer._feedforward_intermediate_dense.activation = exact_gelu
    model = keras_hub.models.BertTextClassifier(backbone, workload.num_labels, dropout=config["hidden_dropout_prob"])
    kernel = np.random.default_rng(workload.seed).normal(0, 0.02, [backbone.hidden_dim, workload.num_labels])
    model.output_dense.set_weights([kernel, np.zeros(workload.num_labels)])
    return model


def exact_gelu(x):
    """GELU by the error function."""
    return keras.activations.gelu(x, approximate=False)


def compile_model(model, workload):
    """Gives the model its loss and optimizer; biases and LayerNorm do not decay."""
    rate = WarmUpDecay(workload.learning_rate, workload.warmup_steps, workload.total_steps)
    optimizer = keras.optimizers.AdamW(rate, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def encode(texts, workload):
    """Returns the features of texts, padded to the full length; refuses those of another tokenizer."""
    # The uncased models were trained without accents; keras-hub keeps them if not told.
    settings = json.loads((Path(workload.weights) / "tokenizer_config.json").read_text(encoding="utf-8"))
    strip_accents = settings["do_lower_case"] if settings.get("strip_accents") is None else settings["strip_accents"]
    tokenizer = keras_hub.models.BertTokenizer.from_preset(workload.weights, strip_accents=strip_accents)
    preprocess = keras_hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=workload.max_seq_length)
    features = preprocess(x=tuple(np.array(segment) for segment in texts[:2] if segment is not None))
    features = {name: np.asarray(value) for name, value in features.items()}
    require_known(unpadded(features), tokenizer.token_to_id("[UNK]"))
    return features


def unpadded(features):
    """Returns the ids of each example without padding."""
    return [ids[mask.astype(bool)].tolist() for ids, mask in zip(features["token_ids"], features["padding_mask"])]


def evaluation_loss(model, features, labels):
    """Returns the mean cross-entropy of some examples without dropout."""
    logits = model.predict(features, batch_size=len(labels), verbose=0)
    return float(np.mean(np.logaddexp.reduce(logits, -1) - logits[np.arange(len(labels)), labels]))


def trainer(model, features, labels, workload):
    """Returns what takes some steps; the loss is the mean of them, which is what Keras keeps."""
    compile_model(model, workload)
    data = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(len(labels), seed=workload.seed).repeat()
    batches = data.batch(workload.batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

    def run(steps):
        began = time.perf_counter()
        loss = model.fit(batches, steps_per_epoch=steps, verbose=0).history["loss"][-1]
        return measured(time.perf_counter() - began, steps * workload.batch_size, loss)

    return run


def predictor(model, features, labels, workload):
    """Returns what predicts all texts some times."""

    def run(passes):
        began = time.perf_counter()
        for _ in range(passes):
            model.predict(features, batch_size=workload.batch_size, verbose=0)
        return measured(time.perf_counter() - began, passes * len(labels))

    return run


def work(workload, channel):
    """Trains or predicts."""
    if workload.suite == "features" or (workload.suite == "train" and workload.way != "max"):
        raise WorkerError(f"keras-hub pads to the full length only; it is not measured in {workload.suite} {workload.way}")
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(workload.threads)  # read when TensorFlow first computes
    texts = read_texts(workload.texts)
    features, labels = encode(texts, workload), np.array(texts.labels)
    model = load_model(workload)
    run = (predictor if workload.suite == "predict" else trainer)(model, features, labels, workload)
    if workload.suite == "start":
        run(1)
        channel.send({"first_step": True, "peak_rss_mb": peak_rss_mb()})
        return

    def check(count):
        few = {name: value[:count] for name, value in features.items()}
        return {"ids": unpadded(few), "loss": evaluation_loss(model, few, labels[:count])}

    channel.ready(VERSIONS)
    channel.serve({"check": check, "run": run})


if __name__ == "__main__":
    run_worker(work)
