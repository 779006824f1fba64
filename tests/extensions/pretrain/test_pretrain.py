"""Whole trainings on text with a tiny model: what is learned, held out, written, and how a run goes on."""

import json
import shlex
import shutil
import sys

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import FlagError
from bert_tf.estimator import update
from bert_tf.extensions.pretrain import command as pretrain
from bert_tf.extensions.pretrain.corpus import sentences
from bert_tf.extensions.pretrain.family import PretrainingFamily
from bert_tf.optimization.deferred import DeferredTable
from bert_tf.training import inference
from bert_tf.training.settings import ActionSettings
from tests import classifier, texts
from tests.integration.commands import same_bits, weights
from tests.training import reading

STEPS, THEN = 6, 4  # of the first phase and of the second
PHASES = {"phase2_num_train_steps": THEN, "phase2_max_seq_length": 32, "phase2_train_batch_size": 3}


def parse(*argv):
    return classifier.parse(argv, pretrain.COMMAND)


SAVED = {"eval_every_n_steps": 4, "keep_optimizer_slots": True, "save_checkpoints_steps": 1, "keep_checkpoint_max": 0}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return texts.write(tmp_path_factory.mktemp("text") / "text.txt", texts.documents(40))


@pytest.fixture
def run(project, text, capsys):
    """Runs the command; returns its status and its errors."""

    def run(folder, **settings):
        named = {"input_file": text, "held_out_documents": 8, "corpus_dir": text.parent / "corpus", **settings}
        status = classifier.pretraining(["pretrain", *texts.flags(project, folder, **named)])
        return status, [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]

    return run


@pytest.fixture(scope="module")
def trained(project, text, tmp_path_factory):
    """The folder of a run of two phases that was evaluated on the way and at its end."""
    folder = tmp_path_factory.mktemp("trained") / "out"
    named = {"input_file": text, "held_out_documents": 8, "corpus_dir": text.parent / "corpus"}
    assert classifier.pretraining(["pretrain", *texts.flags(project, folder, **named, **SAVED, **PHASES)]) == 0
    return folder


def test_a_run_is_trained_through_both_phases_and_evaluated_and_shows_its_mistakes(trained):
    assert [line["step"] for line in reading.objects(trained / "metrics.jsonl")] == list(range(1, STEPS + THEN + 1))
    results = reading.results(trained)
    for name in ("masked_lm_accuracy", "masked_lm_loss", "perplexity", "next_sentence_accuracy", "next_sentence_loss"):
        assert {f"eval_{name}", f"eval_{name}_phase2"} <= results.keys()
        assert set(results["splits"]) == {"dev", "dev_phase2"}
    dev = results["splits"]["dev"]
    assert dev["perplexity"] == pytest.approx(np.exp(dev["masked_lm_loss"]))
    assert dev["loss"] == pytest.approx(dev["masked_lm_loss"] + dev["next_sentence_loss"])
    assert [line["step"] for line in reading.objects(trained / "evaluations.jsonl")] == [4, 8, 10]
    rates = [line["learning_rate"] for line in reading.objects(trained / "metrics.jsonl")]
    assert rates[-1] == pytest.approx(0.003 / (STEPS + THEN), rel=1e-3)
    assert np.all(np.diff(rates[1:]) < 0)
    for mistake in reading.objects(trained / "wrong_examples.jsonl"):
        ((start, end, mark),) = mistake["marks"]
        assert mark == "label"
        assert mistake["text_a"][start:end] == mistake["label"].removeprefix("##")
        assert mistake["predicted"] != mistake["label"]


def test_the_head_has_the_published_names_and_the_command_of_the_record_means_the_same_run(trained):
    names = {name for name in CheckpointReader(trained / f"model.ckpt-{STEPS + THEN}").shapes if name.startswith("cls/")}
    assert {name for name in names if "adam" not in name} == {
        "cls/predictions/output_bias",
        *(f"cls/predictions/transform/{name}" for name in ("dense/kernel", "dense/bias", "LayerNorm/beta", "LayerNorm/gamma")),
        *(f"cls/seq_relationship/{name}" for name in ("output_weights", "output_bias")),
    }
    origins = dict(line.split("\t")[::3] for line in (trained / "variables.tsv").read_text().splitlines()[1:])
    assert {name.partition("/")[0]: origin for name, origin in origins.items()} == {"bert": "checkpoint", "cls": "random"}
    program, *flags = shlex.split(reading.record(trained)["command"])[3:]
    assert program == "pretrain"
    config = parse(program, *flags)
    assert config.of_task.extensions.pretrain.phase2_num_train_steps == THEN
    assert config.train.num_train_steps == STEPS


def test_a_run_goes_on_to_the_same_bits_at_the_border_of_its_phases(run, trained, tmp_path, caplog):
    """Rows from any step on are those of tests/estimator/test_phases.py."""
    copy = shutil.copytree(trained, tmp_path / "copy")
    for path in copy.glob("model.ckpt-*"):
        if int(path.name.split("-")[1].split(".")[0]) > STEPS:
            path.unlink()
    (copy / "checkpoint").write_text(
        f'model_checkpoint_path: "model.ckpt-{STEPS}"\nall_model_checkpoint_paths: "model.ckpt-{STEPS}"\n'
    )
    assert "(dev_rows was [" in run(copy, do_train=True, max_eval_steps=1, **SAVED, **PHASES)[1][0]
    record = reading.record(copy)
    assert record["training"].pop("dev_rows")  # as earlier versions wrote it
    (copy / "run_config.json").write_text(json.dumps(record))
    assert run(copy, do_train=True, max_eval_steps=1, **SAVED, **PHASES) == (0, [])
    assert f"continuing from step {STEPS} of {STEPS + THEN}" in caplog.text
    assert same_bits(weights(copy, STEPS + THEN), weights(trained, STEPS + THEN))


def test_fine_tuning_and_further_training_start_from_a_run(project, run, trained, tmp_path, caplog):
    files = {"init_checkpoint": trained, "vocab_file": None, "bert_config_file": None}
    line = project.flags(tmp_path / "out", do_train=True, num_train_epochs=0.4, **files)
    assert classifier.run(*(flag for flag in line if not flag.endswith("=None"))) == 0
    assert "variables: 23 loaded, 2 newly initialized (output_weights, output_bias)" in caplog.text
    assert "default checkpoint is not applied to your own; if it is as small, add --adam_bias_correction=true\n" in caplog.text
    assert run(tmp_path / "further", **files, do_train=True, num_train_steps=1) == (0, [])
    assert "variables: 30 loaded" in caplog.text


def test_from_scratch_of_full_sentences_by_sampled_words(run, tmp_path, caplog):
    settings = {"init_checkpoint": None, "nsp": False, "sampled_softmax": 16, "num_train_steps": 2, "optimizer": "lamb"}
    assert run(tmp_path / "out", **settings) == (0, [])
    assert "variables: 28 newly initialized, from scratch" in caplog.text
    assert "--init_checkpoint" not in reading.record(tmp_path / "out")["command"]
    results = reading.results(tmp_path / "out")
    assert not [name for name in results if "next_sentence" in name]
    assert results["eval_perplexity"] > 1


def test_sampled_words_learn_the_same_where_updates_of_unused_words_are_put_off(run, tmp_path, monkeypatch):
    tables = []
    monkeypatch.setattr(
        update, "DeferredTable", lambda *args, **kwargs: tables.append(DeferredTable(*args, **kwargs)) or tables[-1]
    )
    settings = {"do_train": True, "sampled_softmax": 16, "gradient_accumulation_steps": 2, "num_train_steps": 4}
    for defers in (True, False):
        assert run(tmp_path / str(defers), defer_embeddings=defers, **settings) == (0, [])
        assert len(tables) == 1
    put_off, at_once = (weights(tmp_path / str(defers), 4) for defers in (True, False))
    for name in (name for name in at_once if name.startswith(("bert/", "cls/"))):
        np.testing.assert_allclose(put_off[name], at_once[name], rtol=1e-4, atol=1e-6, err_msg=name)


NO_TEXT = {"held_out_documents": None, "corpus_dir": None}
ERRORS = [
    ({"phase2_max_seq_length": 32}, "--phase2_max_seq_length belongs to a second phase"),
    ({"held_out_file": "x.txt"}, "--held_out_file and --held_out_documents exclude each other"),
    ({**PHASES, "phase2_max_seq_length": 4096}, "--phase2_max_seq_length=4096 is outside 5 to"),
    ({"input_file": "nowhere.txt"}, "nowhere.txt: cannot read the file: No such file"),
    ({"init_checkpoint": None, "vocab_file": None}, "--bert_config_file and --vocab_file together start from scratch"),
    ({**PHASES, "num_train_steps": None, "num_train_epochs": 1.0}, "two phases are given in steps"),
    ({"sampled_softmax": 10**9}, "--sampled_softmax=1000000000: the vocabulary has 34 words"),
    ({**PHASES, "phase2_train_batch_size": 1, "gradient_accumulation_steps": 2}, "--phase2_train_batch_size=1"),
    ({"input_file": "empty.txt", **NO_TEXT}, "no text in any file"),
    ({"input_file": None, "held_out_documents": 3}, "belong to --input_file"),
    ({"num_warmup_steps": 3, "warmup_proportion": 0.1}, "both set the warm-up"),
    ({"num_train_epochs": 3, "num_train_steps": 2}, "both set the training length"),
]


@pytest.mark.parametrize(("settings", "expected"), ERRORS)
def test_a_problem_is_one_line_before_anything_is_trained(settings, expected, run, tmp_path, monkeypatch):
    monkeypatch.setattr(inference, "Forward", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n\n \n")
    status, errors = run(tmp_path / "out", **settings)
    assert (status, len(errors)) == (2, 1)
    assert expected in errors[0]
    assert not (tmp_path / "out" / "run_config.json").exists()


def test_another_text_is_another_run_and_what_is_trained_on_is_not_held_out(run, trained, text, tmp_path):
    other = texts.write(tmp_path / "text.txt", texts.documents(40, seed=1))
    for folder, settings, problem in (
        (trained, {"do_eval": True, "held_out_documents": 9}, "held_out_documents was 8, now 9; use the run as it was trained"),
        (trained, {"input_file": other, "do_train": True, **SAVED, **PHASES}, "other training rows"),
        (tmp_path / "out", {"held_out_file": text, "held_out_documents": None}, "is trained on too (--input_file)"),
    ):
        status, (error,) = run(folder, **settings)
        assert status == 2
        assert problem in error


def test_a_row_that_is_damaged_ends_training_in_one_line(run, project, text, tmp_path):
    """Its checksum is looked at when it is drawn."""
    shard = tmp_path / "rows.tfrecord"
    made = {"input_file": text, "output_file": shard, "vocab_file": project.vocab_file, "max_seq_length": 24, "workers": 1}
    bert_tf.make_pretraining_data(**made, dupe_factor=1, max_predictions_per_seq=5)
    whole = bytearray(shard.read_bytes())
    whole[-200] ^= 255
    shard.write_bytes(whole)
    settings = {"input_file": shard, "held_out_documents": None, "train_batch_size": 200, "do_train": True}
    status, errors = run(tmp_path / "out", corpus_dir=None, **settings)
    assert status == 2
    assert len(errors) == 1
    assert "its checksum is wrong; the file is damaged; the last checkpoint is kept" in errors[0]


PUBLISHED = {  # google-research/bert run_pretraining.py; without what a file, a TPU or a share of steps stands for
    **dict.fromkeys(("bert_config_file", "input_file", "output_dir", "init_checkpoint")),
    "max_seq_length": 128,
    "max_predictions_per_seq": 20,
    "do_train": False,
    "do_eval": False,
    "train_batch_size": 32,
    "learning_rate": 5e-5,
    "num_train_steps": 100_000,
    "save_checkpoints_steps": 1000,
    "max_eval_steps": 100,
}


def test_published_flags_have_the_published_defaults_and_epochs_take_the_place_of_steps():
    rows = {row.name: row for row in pretrain.SETTINGS}
    assert {name: rows[name].default for name in PUBLISHED} == PUBLISHED
    config = pretrain.configured()
    assert (config.train.num_train_steps, config.train.warmup_proportion) == (100_000, 0.1)
    assert config.actions == ActionSettings(do_train=True, do_eval=True)
    tpu = "--iterations_per_loop=1000 --num_tpu_cores=8 --use_tpu=false --nodo_train --do_eval"
    assert parse("pretrain", *tpu.split()).actions == ActionSettings(do_eval=True)
    config = pretrain.configured(num_train_epochs=2.0)
    assert config.train.num_train_steps is None
    settings, chosen = classifier.with_recipe(config, PretrainingFamily(), default_checkpoint=True, sample_data=True)
    assert "num_train_steps" not in chosen
    assert settings.train.num_train_epochs == 2.0
    trains = parse("pretrain", "--do_train")
    _, chosen = classifier.with_recipe(trains, PretrainingFamily(), default_checkpoint=True, sample_data=True)
    assert "eval_every_n_steps" not in chosen  # the dev split is not read
    assert pretrain.PRETRAIN.of_families == PretrainingFamily.sample_settings.keys()
    plain = pretrain.configured()
    _, chosen = classifier.with_recipe(plain, PretrainingFamily(), default_checkpoint=True, sample_data=False)
    assert chosen == {"adam_bias_correction": True}


def test_help_lists_the_flags_of_text_and_of_training(capsys):
    assert classifier.pretraining(["pretrain", "--help=all"]) == 0
    text = capsys.readouterr().out.replace("--[no]", "--")
    for name in ("input_file", "held_out_documents", "phase2_num_train_steps", "optimizer", "memory_trace_step"):
        assert f"--{name}" in text
    for name in ("do_predict", "class_weights", "task_name", "submission_zip"):
        assert f"--{name}" not in text


@pytest.mark.parametrize("given", [{"input_format": "book"}, {"input_file": "x.txt,y.jsonl"}, {"held_out_file": "y.jsonl.gz"}])
def test_a_package_that_raw_text_needs_is_missed_before_anything_is_loaded(given, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    sentences._segment.cache_clear()
    assert pretrain.configured(input_file="x.txt")
    with pytest.raises(FlagError, match="pip install 'sentencex"):
        pretrain.configured(**{"input_file": "x.txt", **given})


def test_a_call_is_of_one_seed():
    with pytest.raises(FlagError, match="make one call per seed"):
        bert_tf.pretrain(seeds="1-3")
