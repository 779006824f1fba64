"""Worker: the TensorFlow Model Garden's BERT encoder and classifier with Keras, padded to the full length."""

from __future__ import annotations

import functools
import json
from importlib import metadata
from pathlib import Path

import keras_classifier
import numpy as np
import tensorflow as tf
from official.modeling import tf_utils
from official.nlp import optimization
from official.nlp.modeling import layers, models, networks
from protocol import require_known, run_worker
from safetensors.numpy import load_file

VERSIONS = {"tensorflow": tf.__version__, "tf-models-official": metadata.version("tf-models-official")}


def build_encoder(config):
    """Builds the encoder of a config.json; its last layer outputs only the classified position."""
    return networks.BertEncoderV2(
        vocab_size=config["vocab_size"],
        hidden_size=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_attention_heads=config["num_attention_heads"],
        max_sequence_length=config["max_position_embeddings"],
        type_vocab_size=config["type_vocab_size"],
        inner_dim=config["intermediate_size"],
        inner_activation=tf.keras.activations.gelu if config["hidden_act"] == "gelu" else tf_utils.get_activation("gelu"),
        output_dropout=config["hidden_dropout_prob"],
        attention_dropout=config["attention_probs_dropout_prob"],
        output_range=1,
    )


def names_of_layer(layer, prefix):
    """Yields an encoder layer's variables with their names in the file."""
    attention = layer._attention_layer
    parts = {
        "attention.self.query": attention._query_dense,
        "attention.self.key": attention._key_dense,
        "attention.self.value": attention._value_dense,
        "attention.output.dense": attention._output_dense,
        "attention.output.LayerNorm": layer._attention_layer_norm,
        "intermediate.dense": layer._intermediate_dense,
        "output.dense": layer._output_dense,
        "output.LayerNorm": layer._output_layer_norm,
    }
    for name, part in parts.items():
        yield from names_of_part(part, f"{prefix}.{name}")


def names_of_part(part, prefix):
    yield f"{prefix}.weight", part.gamma if hasattr(part, "gamma") else part.kernel
    yield f"{prefix}.bias", part.beta if hasattr(part, "beta") else part.bias


def names_of(encoder):
    yield "embeddings.word_embeddings.weight", encoder.get_embedding_table()
    yield "embeddings.position_embeddings.weight", encoder._position_embedding_layer._position_embeddings
    yield "embeddings.token_type_embeddings.weight", encoder._type_embedding_layer.embeddings
    yield from names_of_part(encoder._embedding_norm_layer, "embeddings.LayerNorm")
    for index, layer in enumerate(encoder.transformer_layers):
        yield from names_of_layer(layer, f"encoder.layer.{index}")
    yield from names_of_part(encoder.pooler_layer, "pooler.dense")


def load_weights(encoder, folder):
    """Copies model.safetensors into an encoder; PyTorch's matrices are transposed."""
    tensors = {name.removeprefix("bert."): value for name, value in load_file(Path(folder) / "model.safetensors").items()}
    for name, variable in names_of(encoder):
        value = tensors[name]
        is_matrix = value.ndim == 2 and "embeddings" not in name
        variable.assign((value.T if is_matrix else value).reshape(variable.shape))


def load_model(workload):
    tf.keras.utils.set_random_seed(workload.seed)
    config = json.loads((Path(workload.weights) / "config.json").read_text(encoding="utf-8"))
    encoder = build_encoder(config)
    # Its own head would drop the pooled output a second time.
    head = layers.ClassificationHead(inner_dim=0, num_classes=workload.num_labels, dropout_rate=0.0)
    model = models.BertClassifier(encoder, workload.num_labels, dropout_rate=config["hidden_dropout_prob"], cls_head=head)
    if not workload.random_weights:
        load_weights(encoder, workload.weights)
    kernel = np.random.default_rng(workload.seed).normal(0, 0.02, [config["hidden_size"], workload.num_labels])
    head.out_proj.set_weights([kernel, np.zeros(workload.num_labels)])
    optimizer = optimization.create_optimizer(workload.learning_rate, workload.total_steps, workload.warmup_steps)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)
    return model


def encode(texts, workload):
    settings = json.loads((Path(workload.weights) / "tokenizer_config.json").read_text(encoding="utf-8"))
    vocabulary = str(Path(workload.weights) / "vocab.txt")
    tokenizer = layers.FastWordpieceBertTokenizer(vocab_file=vocabulary, lower_case=settings["do_lower_case"])
    special = tokenizer.get_special_tokens_dict()
    pack = layers.BertPackInputs(workload.max_seq_length, special_tokens_dict=special)
    features = pack([tokenizer(tf.constant(segment)) for segment in texts[:2] if segment is not None])
    features = {name: value.numpy() for name, value in features.items()}
    ids = keras_classifier.unpadded(features["input_word_ids"], features["input_mask"])
    require_known(ids, Path(vocabulary).read_text(encoding="utf-8").split("\n").index("[UNK]"))
    return features


LIBRARY = keras_classifier.Library("the Model Garden", VERSIONS, encode, "input_word_ids", "input_mask", load_model, iter)

if __name__ == "__main__":
    run_worker(functools.partial(keras_classifier.work, LIBRARY))
