"""An audit of a task's files, and a training with its corrections."""

import csv
import errno
import json
import os
import re
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf import extension
from bert_tf.errors import BertError, DataError, FlagError, OutputError
from bert_tf.extensions.audit import command as audit
from bert_tf.extensions.audit.findings import Row
from bert_tf.extensions.report import scripts
from bert_tf.tasks.sentence.rows import SentenceExample
from tests.tiny import write_project


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return write_project(tmp_path_factory.mktemp("tiny"), layers=1)


@pytest.fixture(scope="module")
def audited(project):
    """An audit of rows with known mistakes, and by which predictions."""
    folder = project.data_dir.parent
    near = "rain came over the old red one and went far"
    texts = [f"{word} came {n} near" for n, word in enumerate(["rain", "bread", "storm", "soup"] * 3)]
    rows = [
        *((text, "ab"[n % 2]) for n, text in enumerate(texts)),
        ("Rain came, 0 near!", "b"),
        (near, "a"),
        (f"{near} two", "a"),
    ]
    rows.append(("<script>alert(1)</script> blue " * 12, "a"))
    (folder / "train.csv").write_text(
        "id,text,label\n" + "".join(f't{n},"{text}",{label}\n' for n, (text, label) in enumerate(rows))
    )
    (folder / "dev.csv").write_text("id,text,label\nd0,bread came 1 near,b\nd1,wind under pear,a\n")
    ids = [f"t{n}" for n in range(len(rows))]
    sure = {"a": "0.9\t0.1", "b": "0.1\t0.9"}
    predicted = [f"{guid}\tx\t{sure['ab'[label == 'a'] if guid == 't3' else label]}\n" for guid, (_, label) in zip(ids, rows)]
    (folder / "out_of_fold.tsv").write_text("id\tlabel\tprobability_a\tprobability_b\n" + "".join(predicted))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BERT_BASE_DIR", str(project.vocab_file.parent))
        files = {f"{split}_file": folder / f"{split}.csv" for split in ("train", "dev")}
        settings = {"id_column": "id", "predictions": str(folder), "checkpoint": project.init_checkpoint, "max_seq_length": 24}
        return bert_tf.audit_data(task_name="custom", output_dir=folder / "audit", **files, **settings)


def test_a_long_comparison_is_announced(caplog):
    with caplog.at_level("INFO", logger="absl"):
        audit._announce(8_000)
        assert caplog.messages == []
        audit._announce(100_000)
    assert caplog.messages[0].startswith("100000 different rows: comparing all pairs takes about 26 minutes")


def test_the_table_has_what_was_planted_and_the_page_escapes_texts_and_loads_nothing(audited):
    with open(audited.table, encoding="utf-8", newline="") as file:
        rows_by_problem = {(row["problem"], row["id"]): row for row in csv.DictReader(file)}
    assert [(rows_by_problem["label_error", "t3"][name]) for name in ("score", "label", "suggested", "action")] == [
        *("0.1000", "b", "a", "relabel")
    ]
    assert rows_by_problem["contradiction", "t12"]["other"] == "train:t0"
    assert (rows_by_problem["leak", "t1"]["other"], rows_by_problem["leak", "t1"]["action"]) == ("dev:d0", "exclude")
    assert rows_by_problem["near_duplicate", "t14"]["other"] == "train:t13"
    assert float(rows_by_problem["truncated", "t15"]["score"]) < 0.5
    assert rows_by_problem["unknown_words", "t15"]["text"].startswith("<script>")
    assert audited.counts["label_error"] == 1
    assert "label_error" in str(audited)
    text = audited.page.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert" not in text
    assert '<small>train:t13</small><span dir="auto">rain came over the old red one and went far</span>' in text
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert scripts.source(script) in text.replace("&#39;", "'")


def test_texts_are_compared_by_means_whatever_the_pooling_of_the_model(project, tmp_path):
    folder = shutil.copytree(project.vocab_file.parent, tmp_path / "model")
    (folder / "run_config.json").write_text(json.dumps({"training": {"pooling": "cls"}}))
    checkpoint, words = str(folder / "bert_model.ckpt"), ["rain came", "storm under pear"]
    rows = [Row("train", True, SentenceExample(text, text, None, "a"), text, "") for text in words]
    vectors, _ = audit._encoded(rows, audit.AuditSettings(checkpoint=checkpoint, max_seq_length=16))
    with bert_tf.encoder(checkpoint, max_seq_length=16) as model:
        expected, others = (model.encode(words, pooling=pooling, layers=0, normalize=True) for pooling in ("mean", "cls"))
    np.testing.assert_allclose(vectors[:, 0], expected, atol=1e-6)
    assert not np.allclose(vectors[:, 0], others, atol=1e-3)


def test_without_the_extension_of_vectors_an_audit_is_one_line(project, tmp_path, monkeypatch):
    monkeypatch.setattr(extension, "installed", dict)
    with pytest.raises(BertError, match="^data audit needs the extension vectors, which is missing"):
        bert_tf.audit_data(task_name="MRPC", data_dir=project.data_dir, output_dir=tmp_path / "audit")


def test_a_training_takes_the_corrections_and_keeps_their_digests(audited, project, tmp_path, untrained):
    def train(path):
        files = {"train_file": project.data_dir.parent / "train.csv", "exclude_rows": path, "relabel": path}
        sizes = {"num_train_steps": 1, "train_batch_size": 4, "max_seq_length": 16}
        model = {"init_checkpoint": project.init_checkpoint, "output_dir": tmp_path / "run"}
        return bert_tf.fine_tune("custom", id_column="id", do_train=True, **files, **sizes, **model)

    with pytest.raises(KeyboardInterrupt):
        train(audited.table)
    record = json.loads((tmp_path / "run" / "run_config.json").read_text())
    assert len(record["training"]["exclude_rows_sha256"]) == len(record["training"]["relabel_sha256"]) == 64
    assert f"--relabel={audited.table}" in record["command"]
    (tmp_path / "other.csv").write_text("id,action,suggested\nt3,exclude,\n")
    with pytest.raises(OutputError, match="another exclude_rows"):
        train(tmp_path / "other.csv")
    assert len(untrained) == 1


def test_mistakes_are_one_line(project, tmp_path):
    given = {"task_name": "MRPC", "data_dir": project.data_dir, "output_dir": tmp_path}
    with pytest.raises(DataError, match="no out_of_fold.tsv; train with --folds=5"):
        bert_tf.audit_data(**given, predictions=str(tmp_path))
    (tmp_path / "p.tsv").write_text("id\tlabel\nelsewhere\t1\n")
    with pytest.raises(DataError, match="no prediction of a training row: its ids are elsewhere"):
        bert_tf.audit_data(**given, predictions=str(tmp_path / "p.tsv"))
    (tmp_path / "p.tsv").write_text("id\tlabel\ntrain-1\t1\n")
    with pytest.raises(DataError, match="no column 'probability_0'"):
        bert_tf.audit_data(**given, predictions=str(tmp_path / "p.tsv"))
    with pytest.raises(FlagError, match="takes --train_file and --dev_file"):
        bert_tf.audit_data(task_name="custom", output_dir=tmp_path)
    with pytest.raises(FlagError, match="--task_name=Pretraining has a command of its own: python -m bert_tf pretrain"):
        bert_tf.audit_data(task_name="Pretraining", data_dir=project.data_dir, output_dir=tmp_path)


@pytest.fixture
def again(audited, project, tmp_path, monkeypatch):
    """Audits a copy of the folder, with other predictions; returns its table and the call."""
    monkeypatch.setenv("BERT_BASE_DIR", str(project.vocab_file.parent))
    for path in (audited.table, audited.page):
        shutil.copy(path, tmp_path)
    train = project.data_dir.parent / "train.csv"

    def call(predictions="elsewhere\tx\t1\t0\n", header="id\tlabel\tprobability_a\tprobability_b\n", **settings):
        (tmp_path / "p.tsv").write_text(header + predictions)
        given = {"task_name": "custom", "train_file": train, "id_column": "id", "predictions": str(tmp_path / "p.tsv")}
        return bert_tf.audit_data(**given, output_dir=tmp_path, **settings)

    return tmp_path / "audit.csv", call


def test_an_edited_table_is_replaced_only_if_a_flag_says_so(again, audited, project, monkeypatch):
    table, call = again
    with pytest.raises(DataError, match="no prediction of a training row"):  # the table is as the audit wrote it
        call()
    edited = table.read_bytes().replace(b"relabel", b"")
    table.write_bytes(edited)
    with pytest.raises(OutputError, match="audit.csv: is not as the audit wrote it; name another --output_dir, or add --over"):
        call()
    with pytest.raises(DataError, match="no prediction of a training row"):
        call(overwrite=True)
    assert table.read_bytes() == edited
    shutil.copy(audited.table, table)

    def encoded(*given):
        table.write_bytes(edited)  # while it computes
        return audit_encoded(*given)

    audit_encoded = audit._encoded
    monkeypatch.setattr(audit, "_encoded", encoded)
    with pytest.raises(OutputError, match="audit.csv: is not as the audit wrote it"):
        call("t3\tx\t1\t0\n", checkpoint=project.init_checkpoint, max_seq_length=24)
    assert table.read_bytes() == edited
    table.unlink()
    table.with_name("audit.html").write_text("of somebody else")
    with pytest.raises(OutputError, match="audit.html: is not as the audit wrote it"):
        call()
    table.with_name("audit.html").unlink()
    table.with_name("audit.html").mkdir()
    with pytest.raises(OutputError, match="audit.html: cannot write: Is a directory"):
        call(overwrite=True)


def test_what_is_said_to_be_written_is(again, monkeypatch):
    table, _ = again
    result = audit.AuditResult((), "", table, table.with_name("audit.html"))
    audit._write(result, b"old", "old\udcff")
    page_before, replace = result.page.read_bytes(), os.replace

    def full(source, target):
        if str(target).endswith(".html"):
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutputError, match=f"audit.html: cannot write: Input/output error.*; {table} is written$"):
        audit._write(result, b"new", "new")
    assert (table.read_bytes(), result.page.read_bytes()) == (b"new", page_before)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("t0\tx\tnan\t0.5\n", "t0: 'nan' is not a probability, from 0 to 1"),
        ("t0\tx\t5\t-4\n", "t0: '5' is not a probability, from 0 to 1"),
        ("t0\tx\t-3\t4\n", "t0: '-3' is not a probability, from 0 to 1"),
        ("t0\tx\t0.5\t0.9\n", "t0: the probabilities have the sum 1.4, not 1"),
        ("t0\tx\tmuch\t0.9\n", "t0: 'much' is not a probability, from 0 to 1"),
        ("t0\tx\t\t1\n", "t0: '' is not a probability, from 0 to 1"),
        ("", "p.tsv: no predictions below the header line"),
        ("t0\tx\t1\t0\nt0\tx\t0\t1\n", "p.tsv:3: the id 't0' is in a line above"),
    ],
)
def test_predictions_that_are_none_are_refused(again, lines, problem):
    with pytest.raises(DataError, match=re.escape(problem)):
        again[1](lines)
