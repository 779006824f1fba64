import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.names import encoder_shapes, pretraining_shapes
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.checkpoints.restore import plan_restore, starting_from
from bert_tf.config import BertConfig
from tests.tiny import random_weights

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1
CONFIG = BertConfig.tiny()
HEAD = ("output_weights", "output_bias")
WORDS = "bert/embeddings/word_embeddings"


@pytest.fixture
def plan(tmp_path):
    """Returns a function that plans to restore a checkpoint of `entries` into a model."""

    def make(entries=None, config=CONFIG, head=HEAD):
        write_checkpoint(tmp_path / "model.ckpt", random_weights(CONFIG) if entries is None else entries)
        return plan_restore(CheckpointReader(tmp_path / "model.ckpt"), config, head)

    return make


def resized(**sizes):
    return dataclasses.replace(CONFIG, **sizes)


def test_a_fitting_checkpoint_is_loaded_whole_and_the_head_newly_initialized(plan):
    restored = plan()
    assert set(restored.loaded) == set(encoder_shapes(CONFIG))
    assert (restored.missing, restored.misshaped, restored.unexpected, restored.initialized) == ((), {}, (), HEAD)
    assert restored.problems() == []
    assert restored.summary() == "39 loaded, 2 newly initialized (output_weights, output_bias)"


def test_some_layers_are_taken_and_variables_begin_anew(tmp_path):
    config = resized(num_hidden_layers=4)
    write_checkpoint(tmp_path / "model.ckpt", {**random_weights(config), "output_weights": np.zeros((2, 16), np.float32)})
    reader, small = CheckpointReader(tmp_path / "model.ckpt"), resized(num_hidden_layers=2)
    new = [name for name in encoder_shapes(small) if "/pooler/" in name]
    restored = plan_restore(reader, small, HEAD, (0, 3), new)
    assert {name for name in encoder_shapes(small) if name not in new} | {"output_weights"} == set(restored.loaded)
    assert restored.initialized == (*new, "output_bias")
    assert restored.unexpected == ()
    assert restored.stored("bert/encoder/layer_1/output/dense/bias") == "bert/encoder/layer_3/output/dense/bias"
    assert restored.stored("bert/encoder/layer_0/output/dense/bias") == "bert/encoder/layer_0/output/dense/bias"


def test_a_checkpoint_of_albert_as_google_publishes_it(tmp_path):
    """Names as in modeling.py of google-research/albert; all layers share the weights of group 0."""
    config = resized(embedding_size=4, model_type="albert", layer_groups=1)
    group = "bert/encoder/transformer/group_0/inner_group_0"
    theirs = {
        "bert/embeddings_project": "bert/encoder/embedding_hidden_mapping_in",
        "bert/encoder/layer_0/attention/self/query": f"{group}/attention_1/self/query",
        "bert/encoder/layer_0/attention/self/key": f"{group}/attention_1/self/key",
        "bert/encoder/layer_0/attention/self/value": f"{group}/attention_1/self/value",
        "bert/encoder/layer_0/attention/output/dense": f"{group}/attention_1/output/dense",
        "bert/encoder/layer_0/attention/output/LayerNorm": f"{group}/LayerNorm",
        "bert/encoder/layer_0/intermediate/dense": f"{group}/ffn_1/intermediate/dense",
        "bert/encoder/layer_0/output/dense": f"{group}/ffn_1/intermediate/output/dense",
        "bert/encoder/layer_0/output/LayerNorm": f"{group}/LayerNorm_1",
    }
    stored = {}
    for name, shape in encoder_shapes(config).items():
        part, _, ending = name.rpartition("/")
        stored[f"{theirs.get(part, part)}/{ending}"] = np.zeros(shape)
    write_checkpoint(tmp_path / "model.ckpt", stored)
    plan = plan_restore(CheckpointReader(tmp_path / "model.ckpt"), config, ())
    assert (plan.missing, plan.misshaped, plan.unexpected) == ((), {}, ())
    assert plan.stored("bert/encoder/layer_0/output/LayerNorm/beta") == f"{group}/LayerNorm_1/beta"


def test_a_checkpoint_of_electra_as_google_publishes_it(tmp_path):
    """Names as in model/modeling.py of google-research/electra; the generator shares the embeddings."""
    config = resized(embedding_size=4, model_type="electra")
    stored = {name.replace("bert/", "electra/"): np.zeros(shape) for name, shape in encoder_shapes(config).items()}
    entries = {name: value for name, value in stored.items() if "pooler" not in name}
    others = {"generator/embeddings_project/bias": np.zeros(2), "discriminator_predictions/dense/bias": np.zeros(2)}
    write_checkpoint(tmp_path / "model.ckpt", {**entries, **others, "global_step": np.int64(1)})
    restored = plan_restore(CheckpointReader(tmp_path / "model.ckpt"), config, HEAD)
    assert restored.problems() == []
    assert {restored.stored(name) for name in restored.loaded} == set(entries)
    assert restored.initialized == ("bert/pooler/dense/kernel", "bert/pooler/dense/bias", *HEAD)


def test_the_head_of_pretraining_is_loaded_as_far_as_it_is_there(plan):
    head = {name: np.zeros(shape, np.float32) for name, shape in pretraining_shapes(CONFIG).items()}
    words = {name: value for name, value in head.items() if "predictions" in name}
    restored = plan({**random_weights(CONFIG), **words}, head=tuple(head))
    assert set(restored.loaded) == {*encoder_shapes(CONFIG), *words}
    assert restored.initialized == ("cls/seq_relationship/output_weights", "cls/seq_relationship/output_bias")
    assert plan(head=tuple(head)).initialized == tuple(head)


def test_only_entries_of_no_known_use_are_unexpected(plan):
    extras = ("cls/predictions/output_bias", "global_step", "output_weights", f"{WORDS}/adam_m", f"{WORDS}/adam_v")
    others = ("gpt/kernel", "zebra")
    assert plan({**random_weights(CONFIG), **{name: np.zeros(1) for name in (*extras, *others)}}).unexpected == others


LARGE = {"hidden_size": 16, "num_hidden_layers": 4, "intermediate_size": 32}
NO_BERT = r"39 encoder variables are missing, .* first; is this a BERT checkpoint, and the right folder\?$"
SIZE = r"39 variables .*word_embeddings is \[32, 16\], expected \[32, 8\]; .*another model size \(Base with Large\)"
WORDS_OF = r"1 variables .*is \[32, 8\], expected \[40, 8\]; the vocabulary size of the configuration is another"
LAYERS = r"16 encoder variables are missing, .*layer_2/.*; has the configuration more layers than the checkpoint\?"


@pytest.mark.parametrize(
    ("entries", "config", "lines"),
    [
        ({"kernel": np.zeros(1)}, {}, [NO_BERT]),
        (random_weights(resized(**LARGE)), {}, [SIZE]),
        (None, {"vocab_size": 40}, [WORDS_OF]),
        (None, {"num_hidden_layers": 3}, [LAYERS]),
        (None, {"num_hidden_layers": 3, "vocab_size": 40}, ["the vocabulary size", "more layers"]),
    ],
    ids=["no BERT", "Large with Base", "another vocabulary", "more layers", "two misfits"],
)
def test_misfits_are_named_with_their_cause(plan, entries, config, lines):
    problems = plan(entries, resized(**config)).problems()
    assert len(problems) == len(lines)
    assert all(re.search(wanted, line) for wanted, line in zip(lines, problems)), problems


def test_the_summary_counts_every_kind_and_names_what_is_new_or_unexpected(plan):
    entries = {**random_weights(CONFIG), "zebra": np.zeros(1)}
    del entries["bert/pooler/dense/bias"]
    summary = plan(entries, resized(vocab_size=40)).summary()
    of_head = "2 newly initialized (output_weights, output_bias)"
    assert summary == f"37 loaded, {of_head}, 1 missing, 1 unexpected (zebra), 1 mis-shaped"


def test_variables_start_with_the_values_of_the_checkpoint_and_the_head_from_its_own_initializer(plan):
    restored = plan({**random_weights(CONFIG), "output_bias": np.ones(2, np.float32)})
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        with starting_from(restored):
            variables = {name: tf1.get_variable(name, shape) for name, shape in encoder_shapes(CONFIG).items()}
            bias = tf1.get_variable("output_bias", [2], initializer=tf1.zeros_initializer())
        session.run(tf1.global_variables_initializer())
        values = session.run(variables)
        np.testing.assert_array_equal(session.run(bias), [0, 0])
        kinds = [operation.type for operation in graph.get_operations()]
    for name, value in random_weights(CONFIG).items():
        np.testing.assert_array_equal(values[name], value, err_msg=name)
    # One operation reads the checkpoint, and nothing random is built.
    assert kinds.count("RestoreV2") == 1
    assert not [kind for kind in kinds if "Random" in kind or "Normal" in kind]


def test_a_plan_for_another_graph_is_refused(plan):
    restored = plan()
    with tf.Graph().as_default(), pytest.raises(ValueError, match="no variable bert/embeddings/"), starting_from(restored):
        pass
