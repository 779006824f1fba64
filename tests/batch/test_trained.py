"""What belongs to a checkpoint."""

import dataclasses
import json
import shutil
from types import SimpleNamespace

import pytest

from bert_tf.batch import loading
from bert_tf.batch.job import ModelOverrides
from bert_tf.errors import BertError, CheckpointError, OutputError, PreflightError
from bert_tf.extensions.span.family import SpanFamily
from bert_tf.head_spec import MULTI_LABEL
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks.sentence.family import SentenceFamily
from tests.batch.runs import LENGTH
from tests.tiny import TOKENS

DELETED = object()


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "copy")


def load(folder, **given):
    return loading.load(str(folder / "model.ckpt-40"), ModelOverrides(**given))


def test_files_can_lie_elsewhere(copy, project):
    for name in ("vocab.txt", "bert_config.json"):
        (copy / name).unlink()
    with pytest.raises(CheckpointError, match="name it with --bert_config_file"):
        load(copy)
    with pytest.raises(CheckpointError, match="name it with --vocab_file"):
        load(copy, bert_config_file=str(project.bert_config_file))
    assert load(copy, bert_config_file=str(project.bert_config_file), vocab_file=str(project.vocab_file)).head.num_labels == 2


def change_record(folder, **values):
    """Changes values of the record, or deletes them."""
    record = json.loads((folder / "run_config.json").read_text())
    training = {**record["training"], **values}
    record["training"] = {name: value for name, value in training.items() if value is not DELETED}
    (folder / "run_config.json").write_text(json.dumps(record))


def test_a_run_records_how_its_texts_were_prepared_and_a_pretrained_model_is_no_classifier(run, project):
    made = load(run)
    assert (made.max_seq_length, made.lower_case, made.long_text, made.head.num_labels) == (LENGTH, True, "truncate", 2)
    other = load(run, max_seq_length=12, long_text="windows")
    assert (other.max_seq_length, other.long_text, other.settings["max_seq_length"]) == (12, "windows", 12)
    with pytest.raises(CheckpointError, match="no output_weights: this is a pretrained model without a task head"):
        loading.load(project.init_checkpoint, ModelOverrides(max_seq_length=LENGTH))


@pytest.mark.parametrize("title", [str, str.title])
def test_without_a_record_vocabulary_and_configuration_decide(copy, title):
    (copy / "run_config.json").unlink()
    (copy / "vocab.txt").write_text("\n".join([*TOKENS[:5], *map(title, TOKENS[5:])]) + "\n")
    made = load(copy)
    assert (made.lower_case, made.record) == (title is str, {})
    assert made.max_seq_length == 64  # the model has no more positions


def test_a_recorded_casing_precedes_the_vocabulary(copy, caplog):
    change_record(copy, do_lower_case=False)
    assert not load(copy).lower_case
    assert not caplog.messages


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"max_seq_length": 4000}, r"--max_seq_length=4000: .*model\.ckpt-40 knows 64 positions"),
        ({"do_lower_case": False}, "^the vocabulary is uncased .* but --do_lower_case is off"),
    ],
)
def test_overrides_that_do_not_fit_are_refused(run, overrides, message):
    with pytest.raises(BertError, match=message):
        load(run, **overrides)


def test_a_head_must_be_that_of_the_record_and_whole(run, monkeypatch):
    with pytest.raises(CheckpointError, match=ANOTHER):
        _ = dataclasses.replace(load(run), record=SpanFamily().record()).head
    variables = {}  # as of a head that takes the mean of the tokens
    monkeypatch.setattr(heads, "make_head", lambda _: SimpleNamespace(variables=lambda _: variables))
    assert load(run).head.num_labels == 2
    variables.update({"output_weights": (2, 8), "head/second": (8,)})
    with pytest.raises(CheckpointError, match="no head/second"):
        load(run)


ANOTHER = r"no cls/squad/output_weights: its head is that of another kind of task \(output_bias, output_weights\); name"


@pytest.mark.parametrize(
    ("record", "family", "message"),
    [
        (None, SentenceFamily(("no", "yes")), "trained on labels 0, 1, not no, yes; its task is MRPC"),
        (None, SentenceFamily(("0", "1"), MULTI_LABEL), "trained on kind classification, not multi_label; its task is MRPC"),
        ({}, SentenceFamily(("a", "b", "c")), "its head has 2 labels, the task 3"),
        ({}, SpanFamily(), ANOTHER),
    ],
)
def test_another_task_is_refused(run, record, family, message):
    model = load(run) if record is None else dataclasses.replace(load(run), record=record)
    model.refuse(SentenceFamily(("0", "1")))
    with pytest.raises(CheckpointError, match=message):
        model.refuse(family)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("max_seq_length", "64", "damaged record of a run: max_seq_length is .*; restore it, or"),
        ("do_lower_case", 1, "damaged record of a run: do_lower_case is .*; restore it, or"),
        ("labels", 2, "damaged record of a run: labels is .*; restore it, or"),
        ("labels", DELETED, "damaged record of a run: labels missing; restore it, or"),
        ("kind", None, "damaged record of a run: kind is .*; restore it, or"),
        ("kind", "poem", "no family of the kind 'poem' is known here; register it"),
        ("bert_config", [], "damaged record of a run: bert_config is .*; restore it, or"),
        ("text_a", 5, "damaged record of a run: text_a is .*; restore it, or"),
    ],
)
def test_an_unusable_record_is_one_line(copy, name, value, problem):
    change_record(copy, **{name: value})
    with pytest.raises(OutputError, match=f"^{copy}/run_config.json: {problem}"):
        load(copy)


def test_vocabulary_and_configuration_are_those_of_the_training(copy):
    config = json.loads((copy / "bert_config.json").read_text())
    change_record(copy, bert_config=config, vocabulary_sha256=load(copy).vocabulary.fingerprint)
    (copy / "bert_config.json").write_text(json.dumps({**config, "hidden_dropout_prob": 0.3}))
    assert load(copy).config.hidden_dropout_prob == 0.3  # the next training may use another
    (copy / "bert_config.json").write_text(json.dumps({**config, "hidden_act": "gelu_erf"}))
    change = r"\(hidden_act was gelu_tanh, now gelu_erf\) differs from the one recorded in run_config.json"
    with pytest.raises(PreflightError, match=f"^{copy}: the configuration {change}"):
        load(copy)
    (copy / "bert_config.json").write_text(json.dumps(config))
    *rest, second, first = (copy / "vocab.txt").read_text().splitlines()
    (copy / "vocab.txt").write_text("\n".join([*rest, first, second]) + "\n")
    with pytest.raises(PreflightError, match=rf"^{copy}: the vocabulary \(34 pieces\) differs from the one recorded"):
        load(copy)
