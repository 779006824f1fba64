"""What belongs to a checkpoint."""

from __future__ import annotations

import dataclasses
import json
import shutil
from types import SimpleNamespace

import pytest

from bert_tf.batch import trained
from bert_tf.batch.job import ModelOverrides
from bert_tf.errors import BertError, CheckpointError, OutputError, PreflightError
from bert_tf.head_spec import CLASSIFICATION, MULTI_LABEL
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.span.family import SpanFamily
from tests.batch.runs import LENGTH, write_run
from tests.tiny import TOKENS

CASED = "\n".join([*TOKENS[:5], *map(str.title, TOKENS[5:])]) + "\n"


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "copy")


def load(folder, **given):
    return trained.load(str(folder / "model.ckpt-40"), ModelOverrides(**given))


def change_record(folder, **values):
    record = json.loads((folder / "run_config.json").read_text())
    record["training"].update(values)
    (folder / "run_config.json").write_text(json.dumps(record))


def test_a_run_says_how_its_texts_were_prepared(run):
    made = load(run)
    assert (made.max_seq_length, made.lower_case, made.long_text, made.head.num_labels) == (LENGTH, True, "truncate", 2)
    assert made.record["labels"] == ["0", "1"]


def test_a_model_with_few_positions_reads_as_many_where_nothing_is_said(copy):
    (copy / "run_config.json").unlink()
    assert load(copy).max_seq_length == 64


def test_what_is_given_goes_first(run):
    made = load(run, max_seq_length=12, long_text="windows")
    assert (made.max_seq_length, made.long_text) == (12, "windows")
    assert made.settings["max_seq_length"] == 12


@pytest.mark.parametrize(("vocabulary", "lower_case"), [(None, True), (CASED, False)])
def test_without_a_record_the_vocabulary_tells_of_case(copy, vocabulary, lower_case):
    (copy / "run_config.json").unlink()
    if vocabulary:
        (copy / "vocab.txt").write_text(vocabulary)
    made = load(copy, max_seq_length=16)
    assert made.lower_case is lower_case
    assert made.record == {}


def test_other_weights_have_another_digest(run):
    digests = {trained.load(str(run / f"model.ckpt-{step}"), ModelOverrides()).digest for step in (20, 40, 100)}
    assert len(digests) == 3


def test_what_is_no_checkpoint_has_no_digest(run):
    assert [trained.digest(str(name)) for name in (run, run / "model.ckpt-7")] == [None, None]


def test_files_can_lie_elsewhere(copy, project):
    for name in ("vocab.txt", "bert_config.json"):
        (copy / name).unlink()
    with pytest.raises(CheckpointError, match="name it with --bert_config_file"):
        load(copy)
    with pytest.raises(CheckpointError, match="name it with --vocab_file"):
        load(copy, bert_config_file=str(project.bert_config_file))
    assert load(copy, bert_config_file=str(project.bert_config_file), vocab_file=str(project.vocab_file)).head.num_labels == 2


def test_misfits_are_told_before_anything_is_computed(run):
    with pytest.raises(BertError, match=r"--max_seq_length=4000: .*model\.ckpt-40 knows 64 positions"):
        load(run, max_seq_length=4000)
    with pytest.raises(BertError, match="--do_lower_case is off"):
        load(run, do_lower_case=False)


def test_a_pretrained_model_is_no_classifier(project):
    with pytest.raises(CheckpointError, match="no output_weights: this is a pretrained model, it has no task head"):
        trained.load(project.init_checkpoint, ModelOverrides(max_seq_length=LENGTH))


def test_a_head_may_have_no_variables(run, monkeypatch):
    """As one that takes the mean of the tokens."""
    monkeypatch.setattr(trained.heads, "of", lambda _: SimpleNamespace(variables=lambda _: {}))
    assert load(run).head.num_labels == 2


def test_each_variable_of_the_head_is_missed(run, monkeypatch):
    variables = {"output_weights": (2, 8), "head/second": (8,)}
    monkeypatch.setattr(trained.heads, "of", lambda _: SimpleNamespace(variables=lambda _: variables))
    with pytest.raises(CheckpointError, match="no head/second"):
        load(run)


@pytest.mark.parametrize(
    ("kind", "labels", "message"),
    [
        (CLASSIFICATION, ("no", "yes"), "trained on labels 0, 1, not no, yes; its task is MRPC"),
        (MULTI_LABEL, ("0", "1"), "trained on kind classification, not multi_label; its task is MRPC"),
    ],
)
def test_other_labels_are_refused(run, kind, labels, message):
    load(run).refuse(SentenceFamily(("0", "1")))
    with pytest.raises(CheckpointError, match=message):
        load(run).refuse(SentenceFamily(labels, kind))


def test_where_no_record_is_the_head_tells_how_many_labels_there_are(run):
    unknown = dataclasses.replace(load(run), record={})
    unknown.refuse(SentenceFamily(("no", "yes")))
    with pytest.raises(CheckpointError, match="its head has 2 labels, the task 3"):
        unknown.refuse(SentenceFamily(("a", "b", "c")))


def test_a_head_of_another_task_is_no_pretrained_model(run):
    bare = dataclasses.replace(load(run), record={})
    said = (
        r"no cls/squad/output_weights: its head is that of another kind of task \(output_bias, output_weights\); name that task"
    )
    with pytest.raises(CheckpointError, match=said):
        bare.refuse(SpanFamily())
    with pytest.raises(CheckpointError, match="no cls/squad/output_weights: its head is that of another kind of task"):
        _ = dataclasses.replace(bare, record=SpanFamily().record()).head


def test_models_of_one_architecture_share_it(run, project, tmp_path):
    again = write_run(tmp_path / "again", project)
    third = write_run(tmp_path / "third", project, record={"labels": ["a", "b", "c"]})
    assert load(run).architecture == load(again).architecture
    assert load(run).architecture != load(third).architecture


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_seq_length", "64"),
        ("do_lower_case", 1),
        ("labels", 2),
        ("kind", None),
        ("bert_config", []),
        ("text_a", 5),
    ],
)
def test_a_record_of_other_values_is_one_line(copy, name, value):
    change_record(copy, **{name: value})
    with pytest.raises(OutputError, match=rf"^{copy}/run_config.json: damaged record of a run: {name} is .*; restore it, or"):
        load(copy)


def test_a_record_of_a_family_that_is_not_registered_is_not_damaged(copy):
    change_record(copy, kind="poem")
    with pytest.raises(OutputError, match=rf"^{copy}/run_config.json: no family of the kind 'poem' is known here; register it"):
        load(copy)


def test_a_record_that_lacks_what_it_had_is_one_line(copy):
    record = json.loads((copy / "run_config.json").read_text())
    del record["training"]["labels"]
    (copy / "run_config.json").write_text(json.dumps(record))
    with pytest.raises(OutputError, match="damaged record of a run: labels missing; restore it, or"):
        load(copy)


def test_dropout_of_the_next_training_may_be_another(copy):
    config = json.loads((copy / "bert_config.json").read_text())
    change_record(copy, bert_config=config)
    (copy / "bert_config.json").write_text(json.dumps({**config, "hidden_dropout_prob": 0.3}))
    assert load(copy).config.hidden_dropout_prob == 0.3


def test_a_vocabulary_that_was_changed_since_the_training_is_refused(copy):
    change_record(copy, vocabulary_sha256=load(copy).vocabulary.fingerprint)
    first, second, *rest = (copy / "vocab.txt").read_text().splitlines()[::-1]
    (copy / "vocab.txt").write_text("\n".join([*rest[::-1], first, second]) + "\n")
    with pytest.raises(PreflightError, match=rf"^{copy}: the vocabulary \(34 pieces\) is not that of the training"):
        load(copy)


def test_a_configuration_that_was_changed_since_the_training_is_refused(copy):
    config = json.loads((copy / "bert_config.json").read_text())
    change_record(copy, bert_config=config)
    assert load(copy).config.hidden_act == "gelu_tanh"
    (copy / "bert_config.json").write_text(json.dumps({**config, "hidden_act": "gelu_erf"}))
    change = r"\(hidden_act was gelu_tanh, now gelu_erf\) is not that of the training"
    with pytest.raises(PreflightError, match=f"^{copy}: the configuration {change}, as run_config.json says"):
        load(copy)


def test_a_record_goes_before_what_the_vocabulary_tells_of_case(copy, caplog):
    record = copy / "run_config.json"
    record.write_text(record.read_text().replace('"do_lower_case": true', '"do_lower_case": false'))
    assert not load(copy).lower_case
    assert not caplog.messages
    (copy / "run_config.json").unlink()
    with pytest.raises(PreflightError, match=r"^the vocabulary is uncased .* but --do_lower_case is off"):
        load(copy, do_lower_case=False, max_seq_length=16)
