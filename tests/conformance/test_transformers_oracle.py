"""The encoder with the real default weights against an independent one: the PyTorch BertModel of `transformers`.

The other side encodes the same batch in an environment of its own, see peers.py.
"""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import huggingface
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from tests.conformance import peers
from tests.graphs import Vectors, evaluate

pytestmark = pytest.mark.slow

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
    folder = tmp_path_factory.mktemp("oracle")
    published = peers.default_checkpoint(folder)
    config = BertConfig.from_json_file(published / huggingface.PUBLISHED_CONFIG_NAME)
    batch = random_batch(config)
    reader = CheckpointReader(published / huggingface.CHECKPOINT_NAME)
    weights = {name: reader[name] for name in reader.shapes}
    ours = evaluate(lambda: Vectors.of(bert(*map(tf.constant, batch.values()), config, Execution())), weights)._asdict()

    np.savez(folder / "batch.npz", **batch)
    peers.run("transformers_encode.py", folder, folder / "batch.npz", folder / "theirs.npz")
    theirs = dict(np.load(folder / "theirs.npz"))
    real = batch["input_mask"] == 1
    return [{"sequence": out["sequence"][real], "pooled": out["pooled"]} for out in (ours, theirs)]


@pytest.mark.parametrize("name", ["sequence", "pooled"])
def test_agrees_with_the_pytorch_model(outputs, name):
    ours, theirs = outputs
    np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=2e-5)
