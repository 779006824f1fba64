"""Refusals and warnings of the training command where the forecast exceeds the memory of a GPU; none is needed here."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import PreflightError
from bert_tf.extensions.pretrain import command as pretrain
from bert_tf.profiling.forecast import step_peak
from bert_tf.runtime.machine import Machine, Plan
from bert_tf.training import fine_tune, memory_preflight, preparation
from tests import classifier, texts
from tests.tiny import write_project


def session(gpus="0", **options):
    """A configuration that shows some GPUs."""
    return tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(visible_device_list=gpus, **options))


CPU = Machine(session(""))
GPU = Machine(session(), Plan(devices=("/device:GPU:0",)))
# Of devices the plan names those of --place alone.
HOSTED, UNSEEN = (Machine(session(gpus), Plan(devices=("/device:CPU:0",))) for gpus in ("0", ""))
CENTRAL = dataclasses.replace(GPU, plan=Plan("central_storage", ("GPU:0",)))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return write_project(tmp_path_factory.mktemp("preflight") / "project")


def prepared(project, machine=GPU, **extra):
    flags = project.flags("out", do_train=True, **extra)
    reads_files = "train_file" in extra
    arguments = ["run_classifier.py", *(flag for flag in flags if not (reads_files and flag.startswith("--data_dir=")))]
    return preparation.prepare(classifier.parse(arguments), machine, environment={})


def planned(prepared_run, batch_size=None, **options):
    """The forecast of a run's step, as the preflight makes it."""
    lengths = memory_preflight._lengths(prepared_run, "train")
    compute_options = dataclasses.replace(memory_preflight._options(prepared_run, lengths, hosted=False), **options)
    batch_size = batch_size or prepared_run.spec.train.train_batch_size
    return step_peak.forecast(prepared_run.config, tokens=lengths.tokens, batch_size=batch_size, options=compute_options)


def test_a_head_that_reads_all_tokens_is_counted_so(project, tmp_path):
    (tmp_path / "train.txt").write_text("rain I-LOC\nand O\n\n" * 8)
    given = prepared(project, task_name="CoNLL2003", data_dir=tmp_path)
    options = memory_preflight._options(given, memory_preflight._lengths(given, "train"), hosted=False)
    assert options.head == ((9, given.config.hidden_size), (9,))
    assert options.reads_tokens


def test_windows_of_the_longest_text_are_counted(project, tmp_path):
    texts_of = [*["rain " * 8] * 30, "rain " * 100, "rain " * 30]
    (tmp_path / "train.jsonl").write_text(
        "".join(json.dumps({"text": t, "label": n % 2}) + "\n" for n, t in enumerate(texts_of))
    )
    files = {"train_file": tmp_path / "train.jsonl", "dev_file": tmp_path / "train.jsonl"}
    ways = {
        "task_name": "custom",
        "problem": "classification",
        "long_text": "windows",
        "max_seq_length": 12,
        "defer_embeddings": False,
    }
    given = prepared(project, **ways, **files)
    lengths = memory_preflight._lengths(given, "train")
    assert (lengths.most_rows, lengths.rows_per_example) == (19, pytest.approx((30 + 19 + 5) / 32))
    assert lengths.rows_spread == pytest.approx(np.std([*[1] * 30, 19, 5]))
    # In the largest part of a batch of 8: its mean and three standard deviations, or the text of 19 windows alone.
    for count, rows in ((1, 41), (2, 26), (8, 19)):
        single = {"most_rows": 1, "rows_per_example": 1.0, "rows_spread": 0.0}
        as_rows = planned(given, **single, micro_batches=count, batch_size=count * rows)
        assert planned(given, micro_batches=count) == as_rows
    grouped = memory_preflight._lengths(prepared(project, group_by_length=True, **ways, **files), "train")
    assert (grouped.most_rows, grouped.rows_per_example) == (19, 12)  # the two long texts are as long as a row


def test_both_phases_of_pre_training_are_forecast_with_their_masked_words(project, tmp_path, caplog):
    text = texts.write(tmp_path / "text.txt", texts.documents(12))
    phases = {"phase2_num_train_steps": 2, "phase2_max_seq_length": 48, "phase2_train_batch_size": 8192}
    flags = texts.flags(project, tmp_path / "out", input_file=text, do_train=True, **phases)
    run = preparation.prepare(classifier.parse(["pretrain", *flags], pretrain.COMMAND), GPU, environment={})
    first, second = (memory_preflight._lengths(run, split) for split in ("train", "train_phase2"))
    assert (first.tokens, second.tokens) == (24, 48)
    assert 0 < first.places < second.places
    memory_preflight.fitted(run, 10**11)
    assert caplog.text.count("training needs about") == 2
    with pytest.raises(PreflightError, match="--phase2_train_batch_size=8192: training needs .* or --phase2_train_batch_size="):
        memory_preflight.fitted(run, 10**8)


def test_what_fits_is_said_and_what_may_fit_is_warned_of(project, caplog):
    given = prepared(project)
    assert memory_preflight.fitted(given, 10**9) is given
    needs = "training needs about 0 MiB on each GPU, 0 MiB of it for rounding and fragmentation"
    assert f"{needs}; 953 MiB are available for tensors" in caplog.text
    memory_preflight.fitted(given, int(planned(given).peak / 1.1))
    assert "it may run out of memory: try --train_batch_size=" in caplog.text
    caplog.clear()
    memory_preflight.fitted(prepared(project, train_batch_size=32, check_memory=False, fit_memory=True), 1000)
    assert "may run out of memory" in caplog.text  # it is not refused


def test_what_cannot_fit_is_refused_with_the_cheapest_combination_and_what_it_changes(project):
    given = prepared(project, train_batch_size=32, defer_embeddings=False)
    with pytest.raises(PreflightError) as error:
        memory_preflight.fitted(given, planned(given, micro_batches=8).needed)
    (problem,) = error.value.problems
    assert problem.startswith("--train_batch_size=32: training needs")
    assert "try --gradient_accumulation_steps=8 or --train_batch_size=" in problem
    assert "--nocheck_memory" in problem
    least = {"micro_batches": 32, "recompute": True}
    memory = planned(given, **least, frozen=frozenset({"embeddings"})).needed
    assert memory < planned(given, **least).peak
    with pytest.raises(PreflightError, match=r"try --freeze=embeddings .*\(frozen parts keep their weights\)"):
        memory_preflight.fitted(given, memory)


@pytest.mark.parametrize(
    ("machine", "memory", "flags", "checked"),
    [
        (CPU, 1000, {}, False),
        (GPU, None, {}, False),
        (CENTRAL, 1, {}, False),
        (GPU, 1000, {"xla": True}, False),  # which keeps tensors of its own
        (GPU, 1000, {"place": "embeddings:/CPU:0"}, True),
        (GPU, 1000, {"place": "encoder/layer_0:/GPU:0"}, False),
        (HOSTED, 1000, {"place": "embeddings:/CPU:0"}, True),
        (UNSEEN, 1000, {"place": "embeddings:/CPU:0"}, False),
    ],
)
def test_memory_is_checked_where_the_forecast_knows_it(project, machine, memory, flags, checked):
    given = prepared(project, machine, train_batch_size=32, **flags)
    if checked:
        with pytest.raises(PreflightError):
            memory_preflight.fitted(given, memory)
    else:
        assert memory_preflight.fitted(given, memory) is given


@pytest.mark.parametrize("growth", [False, True])
def test_memory_that_grows_needs_more(project, caplog, growth):
    given = prepared(project, dataclasses.replace(GPU, session_config=session(allow_growth=growth)))
    memory_preflight.fitted(given, planned(given, growth=False).needed)
    assert ("may run out of memory" in caplog.text) == growth


def test_auto_takes_the_fewest_parts_that_fit(project, caplog):
    given = prepared(project, train_batch_size=32, fit_memory=True, defer_embeddings=False)
    memory = planned(given, micro_batches=4).needed
    assert planned(given, micro_batches=3).needed > memory
    train = memory_preflight.fitted(given, memory).spec.train
    assert (train.train_batch_size, train.gradient_accumulation_steps) == (32, 4)
    assert "--gradient_accumulation_steps=4, so that batches of 32 fit" in caplog.text
    assert memory_preflight.fitted(given, 10**9).spec.train.gradient_accumulation_steps == 1
    memory_preflight.fitted(prepared(project, CPU, fit_memory=True), None)
    assert "--train_batch_size=auto: the GPU memory is unknown" in caplog.text


@pytest.mark.parametrize("written", [["--train_batch_size=auto"], ["--train_batch_size", "auto"], ["-train_batch_size=auto"]])
def test_auto_is_a_batch_of_the_usual_size_in_parts(written):
    settings = classifier.mrpc(*written, "--seed=3")
    assert settings.train.fit_memory
    assert "train_batch_size" not in settings.given  # so that a recipe may choose it
    assert (settings.train.train_batch_size, settings.train.seed) == (32, 3)


def test_padding_and_lengths_are_those_of_the_examples_however_few_are_long(project):
    whole, longest, grouped, halves = (
        memory_preflight._lengths(prepared(project, **flags), "train")
        for flags in ({"pad_to_longest": False}, {}, {"group_by_length": True}, {"precision": "bfloat16"})
    )
    assert whole.tokens == 24
    assert longest.tokens < 24
    assert 0.0 < longest.padding < whole.padding < 1.0
    assert 0.0 < whole.spread < longest.spread < 0.5
    assert whole.tokens * (1 - whole.padding) == pytest.approx(longest.tokens * (1 - longest.padding))
    assert grouped == (longest.tokens, 0.0, 0.0, 1.0, 0.0, 1, 0)
    assert longest.tokens % 8
    assert halves.tokens == -(-longest.tokens // 8) * 8
    given = prepared(project)
    few = dataclasses.replace(given.examples["train"][0], text_a="rain", text_b="rain")
    examples = [few] * 700
    examples[611] = dataclasses.replace(few, text_a="rain " * 14)  # every second is looked at
    lengths = memory_preflight._lengths(dataclasses.replace(given, examples={"train": examples}), "train")
    assert lengths.tokens == 14 + 1 + 3
    assert lengths.padding == pytest.approx(1 - 5 / 18)


def test_a_session_that_evaluates_holds_the_weights_too(project):
    with_it, without = (planned(prepared(project, eval_every_n_steps=steps)).peak for steps in (2, 0))
    config = prepared(project).config
    assert with_it - without == step_peak.forecast(config, tokens=8, batch_size=1).weights


def test_the_command_refuses_before_the_folder_is_claimed(project, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fine_tune, "set_up", lambda *_, **__: dataclasses.replace(GPU, gpu_memory=1000))
    monkeypatch.setattr(fine_tune, "describe_machine", lambda *_: None)
    assert classifier.run(*project.flags(tmp_path / "out", do_train=True)) == 2
    errors = capsys.readouterr().err.splitlines()
    assert [line for line in errors if line.startswith("error: ")] == errors[-1:]
    assert "training needs about" in errors[-1]
    assert not (tmp_path / "out").exists()


def test_a_run_that_is_trained_already_is_not_refused(project, monkeypatch):
    """Another program may have the memory by now; what is left is evaluation."""
    given = prepared(project, train_batch_size=32)
    monkeypatch.setattr(memory_preflight, "last_step", lambda _: given.least_schedule.steps)
    assert memory_preflight.fitted(given, 1) is given


def test_rows_are_as_long_as_the_model_can_read_where_no_flag_says_more(project):
    flags = [flag for flag in project.flags("out", do_train=True) if "max_seq_length" not in flag]
    for more, length in (([], 64), (["--max_seq_length=65"], 65)):  # the latter is refused later
        run = preparation.prepare(classifier.parse(["run_classifier.py", *flags, *more]), CPU, environment={})
        assert (run.spec.data.max_seq_length, run.weights.max_seq_length) == (length, length)
