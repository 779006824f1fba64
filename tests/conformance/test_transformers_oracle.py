"""The encoder with the real default weights against an independent one: the PyTorch BertModel of `transformers`.

PyTorch does not live with TensorFlow: the environment variable BERT_TF_PEERS_PYTHON names the Python of a virtual
environment with benchmarks/peers/transformers.txt, which encodes the same batch in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import default, huggingface
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from tests.graphs import Vectors, evaluate

pytestmark = pytest.mark.slow

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
LENGTHS = (128, 97, 64, 33, 17, 8, 3, 1)


def random_batch(config: BertConfig) -> dict[str, np.ndarray]:
    """Eight sequences of random ids, each with a first and a second segment."""
    random = np.random.default_rng(0)
    positions, lengths = np.arange(max(LENGTHS)), np.array(LENGTHS)[:, None]
    mask = positions < lengths
    return {
        "input_ids": np.where(mask, random.integers(0, config.vocab_size, mask.shape), 0).astype(np.int32),
        "input_mask": mask.astype(np.int32),
        "segment_ids": (mask & (positions >= random.integers(1, lengths + 1))).astype(np.int32),
    }


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Ours and theirs, sequence (padding left out) and pooled, by name."""
    python = os.environ.get("BERT_TF_PEERS_PYTHON")
    if not python:
        pytest.fail("set BERT_TF_PEERS_PYTHON to the Python of a virtual environment with benchmarks/peers/transformers.txt")
    folder = tmp_path_factory.mktemp("oracle")
    published = default.ensure(CHECKPOINTS)
    default._extract(default._download(folder), folder)  # the same weights as they came
    config = BertConfig.from_json_file(published / huggingface.PUBLISHED_CONFIG_NAME)
    batch = random_batch(config)
    reader = CheckpointReader(published / huggingface.CHECKPOINT_NAME)
    weights = {name: reader[name] for name in reader.shapes}
    ours = evaluate(lambda: Vectors.of(bert(*map(tf.constant, batch.values()), config, Execution())), weights)._asdict()

    np.savez(folder / "batch.npz", **batch)
    script = Path(__file__).with_name("transformers_encode.py")
    subprocess.run([python, script, folder, folder / "batch.npz", folder / "theirs.npz"], check=True, timeout=600)
    theirs = dict(np.load(folder / "theirs.npz"))
    real = batch["input_mask"] == 1
    return [{"sequence": out["sequence"][real], "pooled": out["pooled"]} for out in (ours, theirs)]


@pytest.mark.parametrize("name", ["sequence", "pooled"])
def test_agrees_with_the_pytorch_model(outputs, name):
    ours, theirs = outputs
    np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=2e-5)
