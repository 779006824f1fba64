"""Losses and gradients of pre-training against BertForPreTraining of `transformers`, from the same weights.

For the environment of the other side see peers.py.
"""

import numpy as np
import pytest

from bert_tf.checkpoints import huggingface, huggingface_export
from bert_tf.checkpoints.names import pretraining_shapes
from bert_tf.config import BertConfig
from bert_tf.extensions.checkpoint import renaming
from tests import masked
from tests.conformance import peers
from tests.tiny import random_weights

pytestmark = pytest.mark.slow

CONFIG = BertConfig(
    vocab_size=500,
    hidden_size=64,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=128,
    max_position_embeddings=48,
    hidden_act="gelu_erf",
)
RANDOM = np.random.default_rng(5)
HEAD = {name: RANDOM.normal(0, 0.2, shape).astype(np.float32) for name, shape in pretraining_shapes(CONFIG).items()}
WEIGHTS = {**random_weights(CONFIG), **HEAD}
BATCH = masked.batch(masked.features(13, words=CONFIG.vocab_size, longest=40))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Losses and gradients by their names, and the folder of the model."""
    folder = tmp_path_factory.mktemp("oracle")
    huggingface_export.write(folder, WEIGHTS, CONFIG)
    np.savez(folder / "batch.npz", **BATCH)
    peers.run("transformers_pretraining.py", folder)
    return dict(np.load(folder / "found.npz")), folder


def test_losses_agree(theirs):
    outputs, loss, _ = masked.learn(BATCH, WEIGHTS, CONFIG)
    real = np.arange(BATCH["masked_lm_ids"].shape[1]) < BATCH["slots"][:, None]
    words = -outputs["masked_lm_log_probs"][real].mean()
    assert words == pytest.approx(float(theirs[0]["words"]), rel=1e-5)
    assert loss - words == pytest.approx(float(theirs[0]["pairs"]), rel=1e-5)
    assert loss == pytest.approx(float(theirs[0]["loss"]), rel=1e-5)


def test_gradients_of_all_variables_agree(theirs):
    _, _, ours = masked.learn(BATCH, WEIGHTS, CONFIG)
    renamed = renaming.huggingface(CONFIG.num_hidden_layers)
    assert ours.keys() == WEIGHTS.keys()
    largest = max(np.linalg.norm(gradient) for gradient in ours.values())
    for name, gradient in ours.items():
        prefix = "bert." if name.startswith("bert/") else ""
        other = renamed[name].back(theirs[0][f"{prefix}{renamed[name].name}"])
        # No loss depends on the bias of keys: its gradient is rounding.
        size = largest if name.endswith("key/bias") else np.linalg.norm(other)
        assert np.linalg.norm(gradient - other) < 1e-4 * size, name


def test_what_transformers_writes_is_read(theirs):
    weights = huggingface.read_weights(theirs[1] / "again" / "model.safetensors", CONFIG)
    assert weights.keys() == WEIGHTS.keys()
    assert all(np.array_equal(weights[name], weight) for name, weight in WEIGHTS.items())
