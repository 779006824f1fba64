"""A published run again: with made-up facts about a tiny model, from the flags to the report."""

import dataclasses
import json
import logging
import shutil
import statistics
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import bert_tf
from bert_tf import __main__ as front
from bert_tf.config import BertConfig
from bert_tf.extensions.reproduce import facts
from bert_tf.extensions.reproduce import run as job
from bert_tf.extensions.reproduce.command import ReproduceSettings
from bert_tf.extensions.reproduce.facts import GTX1060, INPUT_IDS, TOKENS, Published, TokenLine, Variable, digest
from bert_tf.extensions.series.seeds import SeedResult
from bert_tf.io import log_form
from bert_tf.runtime.nvidia import Gpu, System
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.vocabulary import Vocabulary
from tests.classifier import with_recipe
from tests.tiny import SIZES, write_project
from tests.tiny import TOKENS as PIECES


def published(data_dir: Path) -> Published:
    """What is known of a run of the tiny project, from its own files."""
    first = (data_dir / "dev.tsv").read_text(encoding="utf-8").splitlines()[1].split("\t")
    words = ["[CLS]", *first[3].split(), "[SEP]", *first[4].split(), "[SEP]"]
    ids = [PIECES.index(word) for word in words] + [0] * (24 - len(words))
    config = dataclasses.replace(BertConfig.tiny(len(PIECES)), num_hidden_layers=1)
    return dataclasses.replace(
        GTX1060,
        name="tiny",
        settings={"do_train": True, "do_eval": True, "max_seq_length": 24, "train_batch_size": 8, "num_train_epochs": 1},
        config=config,
        vocabulary=Vocabulary(PIECES).fingerprint,
        examples={"train": SIZES["train"], "dev": SIZES["dev"]},
        steps=5,
        accuracy_range=(0.0, 1.0),
        right=-1,
        token_lines=(
            TokenLine("dev-1", INPUT_IDS, 24, ((0, 24, digest(ids)),)),
            TokenLine("dev-1", TOKENS, len(words), ((2, 3, digest(words[2:5])),)),
        ),
        labels={"dev-1": f"{first[0]} (id = {first[0]})"},
        features={"input_ids": (None, 24), "label_ids": (None,)},
        variables={
            "bert/embeddings/word_embeddings": Variable((len(PIECES), config.hidden_size)),
            "bert/encoder/layer_0/output/dense/bias": Variable((config.hidden_size,)),
            "bert/encoder/layer_1/output/dense/bias": Variable((config.hidden_size,)),
            "output_weights": Variable((2, config.hidden_size), from_checkpoint=False),
        },
    )


class Place(NamedTuple):
    """A tiny project and a folder for its run."""

    folder: Path
    out: Path

    def reproduce(self, *more: str, **changes: Any) -> int:
        """Returns the exit status of the command, with facts of this project but for some changes."""
        run = dataclasses.replace(published(self.folder / "glue" / "MRPC"), **changes)
        folders = {"glue_dir": self.folder / "glue", "bert_base_dir": self.folder / "model", "output_dir": self.out}
        arguments = [*(f"--{name}={path}" for name, path in folders.items()), *more]
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(facts.RUNS, "tiny", run)
            return front.main(["bert_tf", "reproduce", "tiny", *arguments])

    def rows(self) -> list[dict[str, Any]]:
        """Returns the comparison."""
        return json.loads((self.out / "reproduction.json").read_text())["rows"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run that was reproduced; not to be changed."""
    folder = tmp_path_factory.mktemp("reproduce") / "project"
    project = write_project(folder, layers=1)
    (folder / "glue").mkdir()
    project.data_dir.rename(folder / "glue" / "MRPC")
    place = Place(folder, folder / "out")
    assert place.reproduce() == 0
    return place


def test_every_comparable_row_is_as_published(place):
    rows = {row["what"]: row for row in place.rows()}
    others = {
        **dict.fromkeys(("eval_loss", "examples/s", "steps/s", "GPU memory, MB"), "not comparable"),
        "eval_accuracy": "within the published range",
    }
    assert {what: row["verdict"] for what, row in rows.items()} == {what: others.get(what, "equal") for what in rows}
    assert len(rows) == 15
    left = json.loads((place.out / "seed-1" / "eval_results.json").read_text())
    assert [rows[what]["measured"] for what in ("eval_accuracy", "eval_loss")] == [left["eval_accuracy"], left["eval_loss"]]
    _, *lines = map(json.loads, (place.out / "seed-1" / "metrics.jsonl").read_text().splitlines())
    median = statistics.median(line["examples_per_second"] for line in lines)
    assert rows["examples/s"]["measured"] == median == pytest.approx(8 * rows["steps/s"]["measured"])
    forms = json.loads((place.out / "reproduction.json").read_text())["forms"]
    assert {form["form"] for form in forms if form["verdict"] == "missing"} == set()
    assert [form["lines"] for form in forms if form["form"].startswith("global_step/sec")] == [5]  # as many as steps
    text = (place.out / "reproduction.md").read_text()
    assert GTX1060.command in text
    assert "python run_classifier.py --task_name=MRPC" in text
    assert all(f"\n| {what} " in text for what in rows)


def test_a_program_reproduces_as_the_command_does(place, tmp_path, monkeypatch, capsys):
    """Whatever it has made of the log, which is compared too."""
    loggers = [logging.getLogger(name) for name in ("absl", "tensorflow", log_form.published.name)]
    for logger in loggers:
        monkeypatch.setattr(logger, "level", logging.ERROR)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setitem(facts.RUNS, "tiny", published(place.folder / "glue" / "MRPC"))
    folders = {"glue_dir": place.folder / "glue", "bert_base_dir": place.folder / "model"}
    reproduced = bert_tf.reproduce("tiny", output_dir=tmp_path / "out", **folders)
    assert [(row.what, row.verdict) for row in reproduced.rows] == [(row["what"], row["verdict"]) for row in place.rows()]
    assert (reproduced.is_outside, reproduced.folder) == (False, tmp_path / "out")
    assert "<pre># " in reproduced._repr_html_()
    assert capsys.readouterr().err == ""
    assert {logger.level for logger in loggers} == {logging.ERROR}


def test_a_row_that_is_outside_shows_in_the_status_and_no_run_is_judged_by_the_conditions_of_others(place, tmp_path, capsys):
    again = Place(place.folder, shutil.copytree(place.out, tmp_path / "out"))
    assert again.reproduce(steps=6) == 1
    changed = [row["what"] for row, before in zip(again.rows(), place.rows()) if row["verdict"] != before["verdict"]]
    assert changed == ["steps"]  # nor did a form of line, though nothing was left to train: the log is kept
    before = (again.out / "reproduction.json").read_bytes()
    for flag, difference in (
        ("--published_layout", "computed as: by default, now published"),
        ("--gpu_memory_limit_mb=99", "memory limit in MiB: None, now 99"),
        ("--num_train_steps=2", "steps: None, now 2"),
    ):
        assert again.reproduce(flag) == 2
        error = f"error: {again.out}: holds runs with other conditions ({difference}); name another --output_dir"
        assert capsys.readouterr().err.splitlines()[-1] == error
    assert (again.out / "reproduction.json").read_bytes() == before


GPUS = {
    "none": ((), None),
    "the published one": ((Gpu(number=0, model="GTX 1060", memory_total_mb=6078),), None),
    "larger": ((Gpu(number=0, model="H200", memory_total_mb=143771),), 5175),
    # The fastest is TensorFlow's first.
    "larger, but not the first": ((Gpu(number=0, memory_total_mb=6078), Gpu(number=1, memory_total_mb=24576)), 5175),
}


def training(*gpus, **settings):
    return job.fine_tune_config(ReproduceSettings("gtx1060", **settings), System(gpus), {})


@pytest.mark.parametrize("name", GPUS)
def test_a_larger_gpu_gets_the_memory_of_the_published_one_unless_a_limit_is_given(name):
    gpus, limit = GPUS[name]
    assert training(*gpus).devices.gpu_memory_limit_mb == limit
    assert training(*gpus, gpu_memory_limit_mb=9000).devices.gpu_memory_limit_mb == 9000


def test_trains_as_published_or_fewer_steps_with_the_distribution_of_seeds():
    settings = training(seeds="1-5", published_layout=True)
    train = settings.train
    assert (train.train_batch_size, train.learning_rate, train.num_train_epochs) == (12, 2e-5, 3.0)
    assert (train.adam_bias_correction, train.warmup_proportion, settings.data.max_seq_length) == (False, 0.1, 64)
    assert settings.extensions.series.seed_numbers == (1, 2, 3, 4, 5)
    assert (settings.output.output_dir, settings.speed.pack_tokens) == ("out/gtx1060", False)
    config, _ = with_recipe(settings, get_task("MRPC").family, default_checkpoint=True, sample_data=True)
    assert (config.train.freeze, config.train.label_smoothing) == (None, 0.0)  # the recipe of the sample has others
    settings = training(num_train_steps=20)
    assert (settings.train.num_train_steps, "num_train_epochs" in settings.given) == (20, False)
    assert settings.output.log_form == "published"
    losses = (0.4, 0.5, 0.6, 0.7, 0.8)
    results = [SeedResult(n, f"seed-{n}", 917, {"eval_accuracy": 0.8, "eval_loss": x}, None) for n, x in enumerate(losses)]
    config = job.distributions(GTX1060, results)["eval_loss"]
    assert (config.below, config.seeds, config.lowest, config.highest) == (2, 5, 0.4, 0.8)
    assert (config.mean, config.sd) == (pytest.approx(0.6), pytest.approx(0.025**0.5))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "name the run to reproduce: gtx1060"),
        ("--seeds=1", "name the run to reproduce: gtx1060"),
        ("gtx1080", "unknown run 'gtx1080'; did you mean gtx1060? (known: gtx1060)"),
        ("gtx1060 --seeds=x", "--seeds=x: 'x' is not a seed; write numbers up to 2147483647 with commas, or 1-5"),
        ("gtx1060 gtx1060", "reproduce: 2 names given, [RUN] expected; flags are written --name=value"),
        ("gtx1060 --glue_dir={tmp} --output_dir={tmp}/out", "{tmp}/MRPC: no such folder"),
    ],
)
def test_refuses_what_it_does_not_know(words, message, tmp_path, call):
    status, _, err = call("reproduce", *words.format(tmp=tmp_path).split())
    assert (status, err.count("error: ")) == (2, 1)
    assert f"error: {message.format(tmp=tmp_path)}" in err


def test_a_reproduction_that_was_stopped_can_be_continued(monkeypatch, call):
    monkeypatch.setattr(job, "reproduce", lambda *_, **__: None)
    assert call("reproduce", "gtx1060")[0] == 130
    with pytest.raises(KeyboardInterrupt, match="the same call continues from the last checkpoint"):
        bert_tf.reproduce("gtx1060")
