"""Worker: keras-hub's BERT classifier, padded to full length; TensorFlow with XLA is its fastest CPU backend."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import numpy as np
import tensorflow as tf
from protocol import require_known, run_worker

os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import keras_classifier
import keras_hub

VERSIONS = {module.__name__: module.__version__ for module in (keras_hub, keras, tf)}


class WarmUpDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak, then falls linearly to 0."""

    def __init__(self, peak, warmup_steps, total_steps):
        self._peak, self._warmup_steps, self._total_steps = peak, warmup_steps, total_steps

    def __call__(self, step):
        done = keras.ops.cast(step, "float32")
        rising = done / max(self._warmup_steps, 1)
        falling = (self._total_steps - done) / max(self._total_steps - self._warmup_steps, 1)
        return self._peak * keras.ops.maximum(keras.ops.where(done < self._warmup_steps, rising, falling), 0.0)


def load_model(workload):
    """Builds the classifier; its last layer is the same in every worker."""
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
    compile_model(model, workload)
    return model


def exact_gelu(x):
    return keras.activations.gelu(x, approximate=False)


def compile_model(model, workload):
    """Sets loss and optimizer; biases and LayerNorm do not decay."""
    rate = WarmUpDecay(workload.learning_rate, workload.warmup_steps, workload.total_steps)
    optimizer = keras.optimizers.AdamW(rate, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))


def encode(texts, workload):
    """Returns features padded to the full length; rejects those of another tokenizer."""
    # The uncased models were trained without accents; keras-hub keeps them if not told.
    settings = json.loads((Path(workload.weights) / "tokenizer_config.json").read_text(encoding="utf-8"))
    strip_accents = settings["do_lower_case"] if settings.get("strip_accents") is None else settings["strip_accents"]
    tokenizer = keras_hub.models.BertTokenizer.from_preset(workload.weights, strip_accents=strip_accents)
    preprocess = keras_hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=workload.max_seq_length)
    features = preprocess(x=tuple(np.array(segment) for segment in texts[:2] if segment is not None))
    features = {name: np.asarray(value) for name, value in features.items()}
    require_known(keras_classifier.unpadded(features["token_ids"], features["padding_mask"]), tokenizer.token_to_id("[UNK]"))
    return features


LIBRARY = keras_classifier.Library("keras-hub", VERSIONS, encode, "token_ids", "padding_mask", load_model)

if __name__ == "__main__":
    run_worker(functools.partial(keras_classifier.work, LIBRARY))
