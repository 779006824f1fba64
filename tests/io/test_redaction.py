"""Passwords of addresses in what is printed, logged and reported."""

import logging

import pytest

from bert_tf.cli import process
from bert_tf.errors import BertError
from bert_tf.io import log_form
from bert_tf.io.log_form import redacted

HIDDEN = "hunter2"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no server at http://user:hunter2@host:5000/api: refused", "no server at http://***@host:5000/api: refused"),
        ("'postgresql+psycopg2://me:hunter2@db/runs'", "'postgresql+psycopg2://***@db/runs'"),
        ("https://hunter2@host", "https://***@host"),
        ("http://u:hunter2@x@host", "http://***@host"),
        ("HTTP://:hunter2@host", "HTTP://***@host"),
        ("mysql://db/runs?user=me&password=hunter2&x=1", "mysql://db/runs?user=me&password=***&x=1"),
        ("two: http://a:hunter2@b http://c:hunter2@d", "two: http://***@b http://***@d"),
    ],
)
def test_a_password_is_not_shown(text, shown):
    assert redacted(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:5000/a@b",
        "hdfs://me@cluster/file",
        "a@b.org: no",
        "s3://bucket/a:b",
        "http://host/a?page=2",
        "/a/b:c@d",
    ],
)
def test_other_text_stays(text):
    assert redacted(text) == text


def test_errors_reports_and_the_log(tmp_path, capsys, monkeypatch):
    address = f"http://user:{HIDDEN}@host/x"
    assert process.failure(BertError(f"{address}: no answer"))[1] == ["http://***@host/x: no answer"]
    monkeypatch.setattr(process, "_FOLDERS", [tmp_path])
    assert HIDDEN not in process.unforeseen(KeyError(address))
    (report,) = tmp_path.iterdir()
    assert HIDDEN not in report.read_text()
    record = logging.LogRecord("x", logging.WARNING, __file__, 1, "%s: no answer", (address,), None)
    log_form._AboveBar().emit(record)
    assert capsys.readouterr().err == "http://***@host/x: no answer\n"
