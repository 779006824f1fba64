"""Writes encoder_oracle.npz: what the PyTorch BertModel of transformers makes of made-up weights and a made-up batch.

Run by hand, in an environment with benchmarks/peers/transformers.txt:
`.peers/transformers/bin/python tests/modeling/write_encoder_oracle.py`.

The file has the weights by published name, the batch (ids, mask, segments; [B, T]), and by activation the sequence and pooled
vectors and the gradients of sum(pooled * upstream) with respect to each weight.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch
import transformers

TARGET = Path(__file__).with_name("encoder_oracle.npz")
SIZES = {
    "vocab_size": 23,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 10,
    "type_vocab_size": 2,
}
ACTIVATIONS = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new"}  # ours: theirs
LENGTHS, TOKENS = (8, 5, 1), 8
# Theirs to published: the published names were made by tf.layers, with kernels of [in, out].
RENAMED = (
    (r"^", "bert/"),
    (r"\.", "/"),
    (r"encoder/layer/(\d+)", r"encoder/layer_\1"),
    (r"(word|position|token_type)_embeddings/weight", r"\1_embeddings"),
    (r"LayerNorm/weight", "LayerNorm/gamma"),
    (r"LayerNorm/bias", "LayerNorm/beta"),
    (r"/weight$", "/kernel"),
)


def published(name: str) -> str:
    """Returns the published name of a parameter."""
    for pattern, replacement in RENAMED:
        name = re.sub(pattern, replacement, name)
    return name


def turned(name: str, values: torch.Tensor) -> np.ndarray:
    """Returns the values of a parameter, or its gradient, as the published variable has them."""
    values = values.detach().numpy()
    return values.T if published(name).endswith("/kernel") else values


def batch() -> dict[str, np.ndarray]:
    """Returns sequences of random ids of two segments; padding has ids too."""
    random = np.random.default_rng(0)
    shape = (len(LENGTHS), TOKENS)
    mask = np.arange(TOKENS) < np.array(LENGTHS)[:, None]
    return {
        "input_ids": random.integers(0, SIZES["vocab_size"], shape),
        "input_mask": mask.astype(np.int64),
        "segment_ids": random.integers(0, 2, shape),
    }


def main() -> None:
    """Writes the file."""
    random, inputs, arrays = np.random.default_rng(1), batch(), {}
    upstream = random.normal(size=(len(LENGTHS), SIZES["hidden_size"])).astype(np.float32)
    weights = {}
    for ours, theirs in ACTIVATIONS.items():
        config = transformers.BertConfig(**SIZES, hidden_act=theirs, pad_token_id=None, attn_implementation="eager")
        model = transformers.BertModel(config).eval()
        for name, parameter in model.named_parameters():
            if name not in weights:
                center = 1.0 if name.endswith("LayerNorm.weight") else 0.0
                weights[name] = torch.tensor(random.normal(center, 0.3, parameter.shape), dtype=torch.float32)
            parameter.data.copy_(weights[name])
        ids, mask, segments = (torch.tensor(array) for array in inputs.values())
        out = model(input_ids=ids, attention_mask=mask, token_type_ids=segments)
        (out.pooler_output * torch.tensor(upstream)).sum().backward()
        arrays[f"{ours}/sequence"] = out.last_hidden_state.detach().numpy()
        arrays[f"{ours}/pooled"] = out.pooler_output.detach().numpy()
        arrays |= {f"{ours}/gradient/{published(n)}": turned(n, p.grad) for n, p in model.named_parameters()}
    arrays |= {f"weight/{published(name)}": turned(name, values) for name, values in weights.items()}
    np.savez_compressed(TARGET, **inputs, upstream=upstream, **arrays)


if __name__ == "__main__":
    main()
