"""BERT in NumPy and float64, written from the paper's formulas to check the graph against.

Shapes: B batch, T tokens, D hidden size, H heads, K = D // H. Weights are a mapping by published name.
"""

import math
from collections.abc import Mapping

import numpy as np

from bert_tf.config import BertConfig

Weights = Mapping[str, np.ndarray]


def gelu_erf(x: np.ndarray) -> np.ndarray:
    """X times the share of a normal distribution below x."""
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def dense(x: np.ndarray, weights: Weights, scope: str) -> np.ndarray:
    return x @ weights[f"{scope}/kernel"] + weights[f"{scope}/bias"]


def layer_norm(x: np.ndarray, weights: Weights, scope: str, epsilon: float) -> np.ndarray:
    standard = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    return standard * weights[f"{scope}/LayerNorm/gamma"] + weights[f"{scope}/LayerNorm/beta"]


def self_attention(x: np.ndarray, mask: np.ndarray, weights: Weights, scope: str, heads: int) -> np.ndarray:
    """[B, T, D] to [B, T, D]; padding gets no attention at all, unless there is nothing else."""
    mask = np.where(mask.any(axis=1, keepdims=True), mask, 1)
    query, key, value = (
        dense(x, weights, f"{scope}/{part}").reshape(*x.shape[:2], heads, -1) for part in ("query", "key", "value")
    )  # [B, T, H, K]
    scores = np.einsum("bqhk,bthk->bhqt", query, key) / math.sqrt(query.shape[-1])
    powers = np.exp(scores - scores.max(-1, keepdims=True)) * mask[:, None, None, :]  # [B, H, T, T]
    return np.einsum("bhqt,bthk->bqhk", powers / powers.sum(-1, keepdims=True), value).reshape(x.shape)


def bert(
    input_ids: np.ndarray, input_mask: np.ndarray, segment_ids: np.ndarray, weights: Weights, config: BertConfig
) -> tuple[np.ndarray, np.ndarray]:
    """[B, T] each to the sequence [B, T, D] and pooled [B, D] outputs."""
    weights = {name: value.astype(np.float64) for name, value in weights.items()}
    activation = {"gelu_erf": gelu_erf, "gelu_tanh": gelu_tanh}[config.hidden_act]
    tables = (weights[f"bert/embeddings/{name}_embeddings"] for name in ("word", "token_type", "position"))
    words, segments, positions = tables
    x = words[input_ids] + segments[segment_ids] + positions[np.arange(input_ids.shape[1])]
    x = layer_norm(x, weights, "bert/embeddings", config.layer_norm_eps)
    for number in range(config.num_hidden_layers):
        scope = f"bert/encoder/layer_{number}"
        context = self_attention(x, input_mask, weights, f"{scope}/attention/self", config.num_attention_heads)
        context = dense(context, weights, f"{scope}/attention/output/dense")
        x = layer_norm(x + context, weights, f"{scope}/attention/output", config.layer_norm_eps)
        wide = activation(dense(x, weights, f"{scope}/intermediate/dense"))
        x = layer_norm(x + dense(wide, weights, f"{scope}/output/dense"), weights, f"{scope}/output", config.layer_norm_eps)
    return x, np.tanh(dense(x[:, 0], weights, "bert/pooler/dense"))


def pretraining(batch: Mapping[str, np.ndarray], weights: Weights, config: BertConfig) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities of all words at each hidden place, [P, V], and of the pair, [B, 2]; see `bert_tf.modeling.heads`."""
    weights = {name: value.astype(np.float64) for name, value in weights.items()}
    inputs = (batch[name] for name in ("input_ids", "input_mask", "segment_ids"))
    sequence, pooled = bert(*inputs, weights, config)
    real = np.arange(batch["masked_lm_positions"].shape[1]) < batch["slots"][:, None]  # [B, S]
    row, slot = np.nonzero(real)
    activation = {"gelu_erf": gelu_erf, "gelu_tanh": gelu_tanh}[config.hidden_act]
    scope = "cls/predictions/transform"
    x = activation(dense(sequence[row, batch["masked_lm_positions"][row, slot]], weights, f"{scope}/dense"))
    x = layer_norm(x, weights, scope, config.layer_norm_eps)
    words = x @ weights["bert/embeddings/word_embeddings"].T + weights["cls/predictions/output_bias"]
    pair = pooled @ weights["cls/seq_relationship/output_weights"].T + weights["cls/seq_relationship/output_bias"]
    return log_softmax(words), log_softmax(pair)


def log_softmax(x: np.ndarray) -> np.ndarray:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def adamw(weight: np.ndarray, gradients: np.ndarray, rates: np.ndarray, *, decay: float, bias_correction: bool) -> np.ndarray:
    """Returns the weight after one update for each gradient and learning rate, with the published constants."""
    weight, m, v = weight.astype(np.float64), 0.0, 0.0
    for t, (gradient, rate) in enumerate(zip(gradients.astype(np.float64), rates.astype(np.float64)), start=1):
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        mean, square = (m / (1 - 0.9**t), v / (1 - 0.999**t)) if bias_correction else (m, v)
        weight = weight - rate * (mean / (np.sqrt(square) + 1e-6) + decay * weight)
    return weight


def lamb(weight: np.ndarray, gradients: np.ndarray, rates: np.ndarray, *, adapts: bool) -> np.ndarray:
    """As `adamw` with bias correction, by the algorithm of You et al. (2019).

    Args:
      weight: a variable.
      gradients: of each step.
      rates: of each step.
      adapts: whether it decays, and the size of the update is that of the weights.
    """
    weight, m, v = weight.astype(np.float64), 0.0, 0.0
    for t, (gradient, rate) in enumerate(zip(gradients.astype(np.float64), rates.astype(np.float64)), start=1):
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        update = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + (0.01 * weight if adapts else 0)
        own, its = np.linalg.norm(weight), np.linalg.norm(update)
        weight = weight - rate * (own / its if adapts and own > 0 and its > 0 else 1) * update
    return weight
