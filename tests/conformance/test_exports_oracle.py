"""Exports in Hugging Face's layout as `transformers` computes them; for its environment see peers.py."""

import json

import numpy as np
import pytest

from bert_tf.batch import graph
from bert_tf.extensions.export import huggingface
from bert_tf.fields import INPUTS
from tests.conformance import peers
from tests.extensions.engines.models import rows
from tests.extensions.export import test_pretraining
from tests.extensions.export.models import RECORDS, exported
from tests.tiny import TOKENS

pytestmark = pytest.mark.slow

ACTIVATIONS = ("gelu_erf", "gelu_tanh", "relu")
TEXTS = ("The old rains, over bread.", "Wínd\u00a0and SALT!", "unknown")


def expected(trained, batch):
    """The outputs of TensorFlow; vectors as a client gets them."""

    def build():
        inputs = graph.inputs(trained)
        return inputs, graph.compute(trained, inputs, graph.PACKED)

    with graph.loaded(trained, build) as (session, (inputs, computed)):
        wanted = computed.served if trained.head.kind in ("similarity", "contrastive") else computed.logits
        outputs = session.run(wanted, {tensor: batch[name] for name, tensor in inputs.items()})
    if trained.head.kind == "pretraining":
        return np.concatenate([outputs["masked_lm_log_probs"], outputs["next_sentence_logits"]], axis=1)
    return next(iter(outputs.values()))


@pytest.fixture(scope="module", name="compared")
def fixture_compared(tmp_path_factory):
    """Ours and theirs by name, the batch, and ids of texts by both."""
    folder = tmp_path_factory.mktemp("exports")
    features = rows()
    whole = features.batch(np.arange(len(features)), int(features.lengths.max()))
    batch = {**{field.name: whole[field.name] for field in INPUTS}, **places(features)}
    ours = {}
    kinds = {**{kind: (kind, "gelu_erf") for kind in RECORDS}, **{name: ("classification", name) for name in ACTIVATIONS}}
    for name, (kind, activation) in kinds.items():
        model = exported(folder / "runs" / name, kind, config={"hidden_act": activation})
        (folder / name).mkdir()
        huggingface.write(model, folder / name)
        ours[name] = expected(model.trained, batch)
    pretrained = test_pretraining.exported(folder / "runs" / "pretraining")
    (folder / "pretraining").mkdir()
    huggingface.write(pretrained, folder / "pretraining")
    ours["pretraining"] = expected(pretrained.trained, batch)
    np.savez(folder / "batch.npz", **batch)
    (folder / "texts.json").write_text(json.dumps(TEXTS))
    peers.run("transformers_logits.py", folder)
    tokenizer = model.trained.tokenizer
    pieces = ([piece.token for piece in tokenizer.tokenize(text)] for text in TEXTS)
    ids = [model.trained.vocabulary.ids(["[CLS]", *of_text, "[SEP]"]) for of_text in pieces]
    return ours, dict(np.load(folder / "logits.npz")), batch, ids, json.loads((folder / "ids.json").read_text())


def places(features):
    """Two places of each row, and the words that may be there."""
    random = np.random.default_rng(4)
    size = (len(features), 2)
    return {
        "slots": np.full(len(features), 2, np.int32),
        "masked_lm_positions": random.integers(0, features.lengths[:, None], size).astype(np.int32),
        "masked_lm_ids": random.integers(0, len(TOKENS), size).astype(np.int32),
    }


@pytest.mark.parametrize("name", [*RECORDS, *ACTIVATIONS, "pretraining"])
def test_transformers_computes_the_same(compared, name):
    ours, theirs, batch, *_ = compared
    real = batch["input_mask"] == 1 if name in ("tags", "span") else slice(None)
    np.testing.assert_allclose(theirs[name][real], ours[name][real], rtol=1e-5, atol=1e-5)


def test_transformers_cuts_texts_alike(compared):
    *_, ours, theirs = compared
    assert ours == theirs
