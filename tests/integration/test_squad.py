"""Questions about texts, trained, evaluated, killed and used by whole commands."""

import contextlib
import csv
import gzip
import io
import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import FlagError
from tests import classifier, lines
from tests.integration import families
from tests.training import reading

pytestmark = pytest.mark.versions

STEPS = 60


def paragraph(random, name, words):
    row = families.question(random, name, words)
    answers = [{"text": row["answer"], "answer_start": row["start"]}]
    return {"context": row["context"], "qas": [{"id": name, "question": row["question"], "answers": answers}]}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Contexts of 2 to 40 words, of which a window holds 19; one answer is not where its start says."""
    folder, random = tmp_path_factory.mktemp("squad"), np.random.default_rng(2)
    for split, size in (("train", 100), ("dev", 20)):
        made = [paragraph(random, f"{split}-{n}", int(words)) for n, words in enumerate(random.integers(1, 40, size))]
        if split == "train":
            made[5]["qas"][0]["answers"][0]["answer_start"] += 1
        (folder / f"{split}-v1.1.json").write_text(json.dumps({"data": [{"title": split, "paragraphs": made}]}))
    return folder


@pytest.fixture(scope="module")
def flags(project, data):
    config = families.without_dropout(data, project)

    def flags(folder, **extra):
        settings = {"task_name": "SQuAD", "data_dir": data, "doc_stride": 8, "num_train_steps": STEPS, "train_batch_size": 16}
        more = {"learning_rate": 0.01, "log_every_n_steps": 1, "do_train": True, "bert_config_file": config}
        return project.flags(folder, **{**settings, **more, **extra})

    return flags


@pytest.fixture(scope="module")
def trained(tmp_path_factory, flags):
    """The folder of a run that did everything in one command, and what it said."""
    folder = tmp_path_factory.mktemp("trained") / "out"
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert classifier.run(*flags(folder, do_eval=True, do_predict=True, eval_every_n_steps=20)) == 0
    return folder, said.getvalue()


def questions(data, split="dev"):
    (article,) = json.loads((data / f"{split}-v1.1.json").read_text())["data"]
    return [(paragraph["context"], qa) for paragraph in article["paragraphs"] for qa in paragraph["qas"]]


def test_it_learns_with_windows_as_rows_and_writes_files_that_belong_together(trained, data):
    folder, said = trained
    results = reading.results(folder)
    assert results["eval_f1"] > 0.9
    assert results["splits"]["dev"]["examples"] == 20
    assert "By first word of the question" in (folder / "report.html").read_text(encoding="utf-8")
    assert "so not trained on: 1 of 100: train-5" in said
    assert "train: 1 of 100 examples are not trained on, since no row contains their target: train-5" in said
    record = reading.record(folder)
    assert record["schedule"]["train_rows"] > record["schedule"]["train_examples"] == 100
    assert record["training"]["doc_stride"] == 8
    shapes = CheckpointReader(folder / f"model.ckpt-{STEPS}").shapes
    assert shapes["cls/squad/output_weights"] == (2, shapes["bert/pooler/dense/bias"][0])
    assert shapes["cls/squad/output_bias"] == (2,)
    lines = reading.objects(folder / "predictions.jsonl")
    asked = questions(data)
    assert [line["id"] for line in lines] == [qa["id"] for _, qa in asked]
    assert all(context[line["start"] : line["end"]] == line["answer"] for line, (context, _) in zip(lines, asked))
    assert json.loads((folder / "predictions.json").read_text()) == {line["id"]: line["answer"] for line in lines}
    assert {line["window"] for line in lines} > {0}
    n_best = json.loads((folder / "nbest_predictions.json").read_text())
    assert all(n_best[line["id"]][0]["text"] == line["answer"] for line in lines)


def test_rules_of_answers_may_be_given_anew(tmp_path, trained, flags):
    folder = shutil.copytree(trained[0], tmp_path / "out")
    given = {"do_train": False, "do_eval": True, "max_answer_length": 1, "n_best_size": 2, "max_seq_length": 32}
    line = [flag for flag in flags(folder, **given) if not flag.startswith(("--num", "--learning", "--log"))]
    assert classifier.run(*line) == 0
    assert reading.results(folder)["eval_f1"] > 0.9


def test_batch_jobs_know_it(tmp_path, trained, data):
    folder = trained[0]
    assert lines.run("evaluate", checkpoints=folder, task_name="SQuAD", data_dir=data, output_dir=tmp_path) == 0
    (row,) = json.loads((tmp_path / "results.json").read_text())["rows"]
    assert row["metrics"]["f1"] == pytest.approx(reading.results(folder)["eval_f1"])
    packed = tmp_path / "dev.json.gz"
    packed.write_bytes(gzip.compress((data / "dev-v1.1.json").read_bytes()))
    table = tmp_path / "own.csv"
    with table.open("w", newline="") as file:
        rows = [{"id": qa["id"], "question": qa["question"], "context": context} for context, qa in questions(data)]
        writer = csv.DictWriter(file, ["context", "id", "question"])
        writer.writeheader()
        writer.writerows(rows)
    job = tmp_path / "job.yaml"
    outputs = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    files = [{"input": str(source), "output": str(output)} for source, output in zip((packed, table), outputs)]
    job.write_text(json.dumps({"checkpoint": str(folder), "files": files}))
    assert lines.run("predict", job=job) == 0
    assert [output.read_text() for output in outputs] == [(folder / "predictions.jsonl").read_text()] * 2


def test_rules_of_answers_are_choosable_wherever_the_model_is_used(tmp_path, trained, data):
    asked = [{"question": qa["question"], "context": context} for context, qa in questions(data)]
    one, none = {"n_best_size": 1}, {"max_answer_length": 1, "n_best_size": 3}
    with bert_tf.load(trained[0], **one) as model:
        answers = model.predict(asked)
        assert {len(answer.n_best) for answer in answers} == {1}
        assert all(row["context"][answer.start : answer.end] == answer.label for row, answer in zip(asked, answers))
        result = model.evaluate([{**row, "answer": answer.label} for row, answer in zip(asked, answers)])
        assert result.metrics == {"f1": 1.0, "exact_match": 1.0, "loss": pytest.approx(result.metrics["loss"])}
    outputs = [tmp_path / "usual.jsonl", tmp_path / "other.jsonl"]
    for output, rules in zip(outputs, ({}, none)):
        bert_tf.predict_files(checkpoint=trained[0], input=data / "dev-v1.1.json", output=output, **rules)
    usual, other = ([json.loads(line)["probability"] for line in path.read_text().splitlines()] for path in outputs)
    assert usual != other
    with pytest.raises(FlagError, match="--constrained_decoding: a model of span does not take it; it takes --n_best_size"):
        bert_tf.predict_files(
            checkpoint=trained[0], input=data / "dev-v1.1.json", output=tmp_path / "x", constrained_decoding=True
        )
    table = bert_tf.evaluate(trained[0], task_name="SQuAD", data_dir=data, output_dir=tmp_path / "table", **none)
    assert table.rows[0].settings["rules"] == {**none, "null_score_diff_threshold": 0.0}
