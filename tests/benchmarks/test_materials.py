"""Texts, weights in both layouts, and workloads."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import materials as made
from benchmarks.comparisons import COMPARISONS, Comparison, Contender
from benchmarks.materials import SEED, workload
from benchmarks.texts import EXAMPLES, TEXTS
from bert_tf.checkpoints import huggingface
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.head_spec import HeadSpec
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks.base import TRAIN
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.settings import of_values
from tests.tiny import SIZES, TOKENS

ROW = Comparison("x", "X", "train", (Contender("bert_tf"),), ("bert_tf",))
KEYS = {
    *("suite", "way", "precision", "weights", "checkpoint", "random_weights", "texts", "num_labels", "max_seq_length"),
    *("task", "kind", "labels", "learning_rate", "warmup_steps", "total_steps", "threads", "seed", "batch_size"),
}


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", [name for name, kind in TEXTS.items() if kind.task == "MRPC"])
def test_texts_have_what_the_protocol_says(kind, materials):
    for row in rows(materials.texts(kind)):
        assert row.keys() == {"text_a", "text_b", "label"}
        assert row["text_a"]
        assert row["label"] in (0, 1)


def test_rows_of_texts(materials):
    assert len(rows(materials.texts("dev and test"))) == SIZES["dev"] + SIZES["test"]
    found = rows(materials.texts("sentences"))  # every text by itself, where there is no other data
    assert len(found) == 2 * sum(SIZES.values())
    assert {row["text_b"] for row in found} == {None}
    assert set(materials.lengths("filled", 48)) == {48}


def test_a_trial_takes_some_of_the_texts(materials):
    everything = rows(materials.texts("train"))
    assert len(everything) > 3
    few = rows(materials.texts("train", 3))
    assert len(few) == 3
    assert all(row in everything for row in few)


def test_the_shortest_texts_are_those_that_are_checked(materials):
    sizes = [len(row["text_a"] + (row["text_b"] or "")) for row in rows(materials.texts("train"))]
    assert max(sizes[:EXAMPLES]) <= min(sizes[EXAMPLES:], default=max(sizes))


def test_both_layouts_hold_the_same_encoder(materials, project):
    config = BertConfig.from_json_file(project.bert_config_file)
    folder = materials.huggingface("default", "train")
    theirs = huggingface.read_weights(folder / huggingface.WEIGHTS_NAME, config)
    ours = CheckpointReader(materials.published("default", "train") / "bert_model.ckpt")
    original = CheckpointReader(project.init_checkpoint)
    for name, array in theirs.items():
        np.testing.assert_array_equal(array, original[name])
        np.testing.assert_array_equal(ours[name], original[name])
    assert set(ours.shapes) - set(theirs) == {"output_weights", "output_bias"}


def test_the_exported_configuration_is_the_same_model(materials, project):
    read = BertConfig.from_json_file(materials.huggingface("default", "train") / "config.json")
    assert read == BertConfig.from_json_file(project.bert_config_file)


def test_the_exported_tokenizer_knows_the_special_tokens(materials):
    folder = materials.huggingface("default", "train")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert settings["do_lower_case"] is True
    assert {settings[f"{kind}_token"] for kind in ("pad", "unk", "cls", "sep", "mask")} <= set(TOKENS)
    assert json.loads((folder / "config.json").read_text())["pad_token_id"] == TOKENS.index("[PAD]")
    assert (folder / "vocab.txt").read_text().splitlines() == list(TOKENS)


def test_random_weights_have_no_file(materials):
    assert not (materials.huggingface("mini", "train") / "model.safetensors").exists()
    assert not list(materials.published("mini", "train").glob("bert_model*"))
    assert BertConfig.from_json_file(materials.published("mini", "train") / "bert_config.json").hidden_size == 256


def test_the_head_is_drawn_by_the_rule_of_the_workers(project):
    config = BertConfig.from_json_file(project.bert_config_file)
    head = made.head(config, HeadSpec(2), seed=SEED)
    expected = np.random.default_rng(SEED).normal(0, 0.02, [config.hidden_size, 2]).astype(np.float32)
    np.testing.assert_array_equal(head["output_weights"].T, expected)
    assert not head["output_bias"].any()


@pytest.mark.parametrize(("kind", "labels"), [("train", 2), ("questions", 2), ("words", 9)])
def test_each_family_starts_from_a_head_of_its_own(kind, labels, materials, project):
    spec = materials.task(kind).family.head
    variables = heads.of(spec).variables(BertConfig.from_json_file(project.bert_config_file))
    reader = CheckpointReader(materials.published("default", kind) / "bert_model.ckpt")
    assert {name: reader.shapes[name] for name in variables} == variables
    assert spec.num_labels == labels


def test_a_workload_has_what_the_protocol_says(materials):
    content = workload(ROW, Contender("t", "transformers", way="max"), materials, threads=2, needed_steps=1)
    assert content.keys() == KEYS
    assert (content["way"], content["batch_size"], content["random_weights"]) == ("max", 12, False)
    assert content["total_steps"] == int(SIZES["train"] / 12 * 3)


def test_a_schedule_is_never_shorter_than_the_measuring_and_our_worker_is_told_its_levers(materials):
    content = workload(ROW, Contender("b", flags={"group_by_length": True}), materials, threads=2, needed_steps=500)
    assert (content["total_steps"], content["warmup_steps"]) == (500, 50)
    assert content["flags"] == {"group_by_length": True}
    first, second = (json.loads(materials.write_workload({}).read_text())["scratch"] for _ in range(2))
    assert first != second


def test_the_table_is_consistent():
    for row in COMPARISONS:
        names = [contender.name for contender in row.contenders]
        assert len(set(names)) == len(names)
        assert set(row.baselines) <= set(names)
        assert row.contenders[0].library == "bert_tf"
        assert row.texts in TEXTS
        for requirement in row.requirements:
            assert requirement.contender in names
            assert requirement.against in ("", *names)
            assert requirement.beside in ("", *(other.name for other in COMPARISONS))


@pytest.mark.parametrize("kind", ["questions", "words"])
def test_a_file_of_a_task_is_read_as_the_examples_that_it_holds(kind, materials):
    path = materials.texts(kind)
    read = get_task(TEXTS[kind].task, of_values({"train_file": str(path)})).examples("", TRAIN)

    def said(examples):
        return sorted((example.texts, example.label) for example in examples)

    assert said(read) == said(materials.examples(kind))


def test_questions_of_a_paragraph_have_one_context(materials):
    (articles,) = json.loads(materials.texts("questions").read_text(encoding="utf-8"))["data"][-1:]
    assert sum(len(paragraph["qas"]) for paragraph in articles["paragraphs"]) > len(articles["paragraphs"])


def test_tags_are_those_of_the_family(materials):
    rows = [json.loads(line) for line in materials.texts("words").read_text(encoding="utf-8").splitlines()]
    assert {tag for row in rows for tag in row["tags"]} <= set(materials.task("words").family.labels)
