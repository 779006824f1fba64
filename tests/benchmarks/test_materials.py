"""Texts, weights in both layouts, and workloads."""

import json

import numpy as np
import pytest

from benchmarks.comparisons import COMPARISONS, Comparison, Contender
from benchmarks.materials import SEED, workload
from benchmarks.texts import EXAMPLES, TEXTS
from bert_tf.checkpoints import huggingface
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks.base import TRAIN
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import of_values
from tests.tiny import SIZES, TOKENS

ROW = Comparison("x", "X", "train", (Contender("bert_tf"),))
KEYS = {
    *("suite", "way", "precision", "weights", "checkpoint", "random_weights", "texts", "data", "num_labels", "max_seq_length"),
    *("task", "kind", "labels", "learning_rate", "warmup_steps", "total_steps", "threads", "seed", "batch_size"),
}

COMPARED = {row.name: row for row in COMPARISONS}


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_texts_are_as_the_protocol_says_and_the_shortest_are_checked(materials):
    texts = {kind: rows(materials.texts(kind)) for kind, row in TEXTS.items() if row.task == "MRPC"}
    every = [row for some in texts.values() for row in some]
    assert all(row.keys() == {"text_a", "text_b", "label"} and row["text_a"] and row["label"] in (0, 1) for row in every)
    assert len(texts["dev and test"]) == SIZES["dev"] + SIZES["test"]
    assert [row["text_b"] for row in texts["sentences"]] == [None] * 2 * sum(SIZES.values())  # each text alone: SST-2 is absent
    assert set(materials.features("filled", 48).lengths) == {48}
    few = rows(materials.texts("train", 3))
    assert len(few) == 3
    assert all(row in texts["train"] for row in few)
    sizes = [len(row["text_a"] + row["text_b"]) for row in texts["train"]]
    assert max(sizes[:EXAMPLES]) <= min(sizes[EXAMPLES:], default=max(sizes))


def test_both_layouts_hold_the_same_model(materials, project):
    config = BertConfig.from_json_file(project.bert_config_file)
    folder = materials.huggingface("default", "train")
    theirs = huggingface.read_weights(folder / huggingface.WEIGHTS_NAME, config)
    ours = CheckpointReader(materials.published("default", "train") / "bert_model.ckpt")
    original = CheckpointReader(project.init_checkpoint)
    for name, array in theirs.items():
        np.testing.assert_array_equal(array, original[name])
        np.testing.assert_array_equal(ours[name], original[name])
    assert set(ours.shapes) - set(theirs) == {"output_weights", "output_bias"}
    assert BertConfig.from_json_file(folder / "config.json") == config
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert settings["do_lower_case"] is True
    assert {settings[f"{kind}_token"] for kind in ("pad", "unk", "cls", "sep", "mask")} <= set(TOKENS)
    assert json.loads((folder / "config.json").read_text())["pad_token_id"] == TOKENS.index("[PAD]")
    assert (folder / "vocab.txt").read_text().splitlines() == list(TOKENS)


def test_random_weights_have_no_file(materials):
    assert not (materials.huggingface("mini", "train") / "model.safetensors").exists()
    assert not list(materials.published("mini", "train").glob("bert_model*"))
    assert BertConfig.from_json_file(materials.published("mini", "train") / "bert_config.json").hidden_size == 256


@pytest.mark.parametrize(("kind", "scope", "labels"), [("train", "", 2), ("questions", "cls/squad/", 2), ("words", "", 9)])
def test_the_head_of_each_family_is_drawn_by_the_rule_of_the_workers(kind, scope, labels, materials, project):
    config = BertConfig.from_json_file(project.bert_config_file)
    reader = CheckpointReader(materials.published("default", kind) / "bert_model.ckpt")
    variables = heads.make_head(materials.task(kind).family.head).variables(config)
    assert {name: reader.shapes[name] for name in variables} == variables
    expected = np.random.default_rng(SEED).normal(0, 0.02, [config.hidden_size, labels]).astype(np.float32)
    np.testing.assert_array_equal(reader[f"{scope}output_weights"].T, expected)
    assert not reader[f"{scope}output_bias"].any()


def test_rows_of_pre_training_are_pieces_and_what_their_second_text_is(materials):
    examples, text_rows = materials.examples("pieces"), rows(materials.texts("pieces"))
    assert len(text_rows) == len(examples) > 0
    assert {tuple(row["pieces"]) for row in text_rows} == {example.pieces for example in examples}
    assert sum(row["is_random"] for row in text_rows) == sum(example.label == "random" for example in examples) > 0
    content = workload(COMPARED["pretraining"], Contender("t", "transformers"), materials, threads=1, needed_steps=1)
    assert content["random_weights"]  # the head of pre-training is not in every checkpoint


def test_a_workload_has_what_the_protocol_says_and_a_schedule_as_long_as_the_measurement(materials):
    content = workload(ROW, Contender("t", "transformers", way="max"), materials, threads=2, needed_steps=1)
    assert content.keys() == KEYS
    assert (content["way"], content["batch_size"], content["random_weights"]) == ("max", 12, False)
    assert content["total_steps"] == int(SIZES["train"] / 12 * 3)
    content = workload(ROW, Contender("b", flags={"group_by_length": True}), materials, threads=2, needed_steps=500)
    assert (content["total_steps"], content["warmup_steps"]) == (500, 50)
    assert content["flags"] == {"group_by_length": True}
    first, second = (json.loads(materials.write_workload({}).read_text())["scratch"] for _ in range(2))
    assert first != second


def test_the_table_is_consistent():
    for row in COMPARISONS:
        names = [contender.name for contender in row.contenders]
        assert len(set(names)) == len(names)
        assert {*row.baselines, *(requirement.contender for requirement in row.requirements)} <= set(names)
        assert row.contenders[0].library == "bert_tf"
        assert row.texts in TEXTS
        assert {requirement.against for requirement in row.requirements} <= {"", *names}
        assert {requirement.beside for requirement in row.requirements} <= {"", *(other.name for other in COMPARISONS)}


def test_single_texts_of_a_task_of_pairs_have_features(materials):
    assert materials.features("to encode", 64).units == len(materials.examples("to encode"))


def _texts_and_label(example):
    return example.texts, example.label


@pytest.mark.parametrize(
    ("kind", "problem", "told"),
    [
        ("questions", None, _texts_and_label),
        ("words", None, _texts_and_label),
        ("options", "choice", lambda example: (example.rows, example.label)),
        ("scored pairs", "similarity", lambda example: example.texts),
    ],
)
def test_the_file_of_a_task_is_read_as_the_examples_it_holds(kind, problem, told, materials):
    path = materials.texts(kind)
    named = (TEXTS[kind].task, {}) if problem is None else ("custom", {"problem": problem})
    read = get_task(named[0], of_values({"train_file": str(path), **named[1]})).examples("", TRAIN)
    assert sorted(map(told, read)) == sorted(map(told, materials.examples(kind)))
    if kind == "scored pairs":
        assert sorted(example.label for example in read) == sorted(example.label / 5 for example in materials.examples(kind))
    if kind == "questions":  # those of a paragraph share its context
        paragraphs = json.loads(path.read_text(encoding="utf-8"))["data"][-1]["paragraphs"]
        assert sum(len(paragraph["qas"]) for paragraph in paragraphs) > len(paragraphs)
