"""What clients are told, over a socket; the model is a toy."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
import subprocess
import sys
import time
import types
from typing import ClassVar
from unittest import mock

import pytest

from bert_tf.errors import FlagError
from bert_tf.extensions.serve import app
from bert_tf.extensions.serve.call import Failed
from bert_tf.extensions.serve.refusal import Guard
from bert_tf.extensions.serve.settings import Address, Limits, Patience
from tests.extensions.serve.fakes import LATER, READER, Loading, Running, Toy, description, message

ANY = "0.0.0.0"  # noqa: S104


@pytest.fixture(scope="module")
def service():
    with Running(max_rows=4, max_text_length=50, max_body_mb=0.002, max_request_tokens=60, admin=True) as running:
        yield running


def test_one_row_or_many(service):
    assert [one["texts"] for one in service.predict("a", ["b", "c"], {"text": "d"})] == [["a"], ["b", "c"], ["d"]]
    status, said, headers = service.ask(body={"text_a": "a", "text_b": "b", "id": 7})
    assert (status, headers["content-type"]) == (200, "application/json")
    assert said["predictions"] == [{"id": "7", "texts": ["a", "b"], "call": "predict", "of": "model.ckpt-1"}]
    assert said["model"] == {"name": "toy", "checkpoint": "model.ckpt-1", "digest": "d1d1d1d1d1d1"}
    assert service.predict() == []
    assert service.predict("a\0b")[0]["texts"] == ["a\0b"]


def test_vectors_may_be_normalized(service):
    assert message(service.ask("/encode", {"rows": [], "normalize": 1}))[0] == 422
    _, said, _ = service.ask("/encode", {"rows": ["a", ["b", "c"]], "normalize": True})
    assert [(one["texts"], one["normalize"]) for one in said["vectors"]] == [(["a"], True), (["b", "c"], True)]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "the body is not usable: line 1: not JSON"),
        (b'{"rows": ["\xff"]}', 400, "the body is not UTF-8: byte 11"),
        (b'{"rows": [], "rows": []}', 400, "the key 'rows' appears twice"),
        (b'{"text": "a", "id": NaN}', 400, "not JSON: NaN is not a number there"),
        (gzip.compress(b'{"text": "a"}', mtime=0), 415, "the body is gzip, which is not supported; send uncompressed JSON"),
        (b"[1]", 422, "the body is a list; give an object"),
        (b'{"rows": "text"}', 422, "rows is a string; give a list"),
        (b'{"rows": [], "model": 1}', 422, "unknown key 'model' beside rows"),
        (b'{"rows": ["a", 5]}', 422, "row 1: is 5; give a text"),
        (b'{"text_a": "a", "text_b": " "}', 422, "row 0: a text is empty"),
        (b'{"text": "a", "id": {"a": 1}}', 422, "row 0: the value in column 'id' is not a name: {'a': 1}"),
        (b'{"txt": "a"}', 422, "row 0: has txt; give"),
        (json.dumps({f"x{number}": 1 for number in range(150)}).encode(), 422, "x41, ; give text or sentence"),
        (b'{"text": "\\ud800"}', 422, "unpaired surrogate '\\ud800'"),
        (b'{"rows": ["a", "b", "c", "d", "e"]}', 413, "5 rows, at most 4; send less at a time"),
        (b'{"text": "' + b"a" * 51 + b'"}', 413, "a text of 51 characters, at most 50"),
        (json.dumps({"rows": ["a " * 25] * 4}).encode(), 413, "64 tokens, at most 60"),
        (b"a" * 2001, 413, "the body has more than 2000 bytes"),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, bytes) else None,
)
def test_what_cannot_be_used_is_one_line(service, body, status, said):
    answered, line = message(service.ask(body=body))
    assert answered == status
    assert said in line


def test_the_listening_process_has_no_tensorflow():
    code = "import sys; from bert_tf.extensions.serve import app, call; call.every(); sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


EXPLAINING = ("predict", "explain")


def test_an_explanation_is_the_answer_itself():
    asked = {"method": "occlusion", "label": 1, "word": 0}
    with Running(Toy(description(calls=EXPLAINING))) as running:
        answer = running.ask("/explain", {"rows": ["a"], **asked})
        assert answer[:2] == (200, {"id": "row-0", "texts": ["a"], "call": "explain", "of": "model.ckpt-1", **asked})
        assert running.ask("/explain", {"text": "a"})[1]["texts"] == ["a"]
        assert "Predict and explain</button>" in running.ask("/")[1]
        assert "POST /explain" in running.ask("/docs")[1]
    with Running(Toy(description(calls=("predict",)))) as running:
        assert "Explain</button>" not in running.ask("/")[1]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"rows": []}, "0 rows; explain takes one at a time"),
        ({"text": "a", "method": 1}, "method is a number; give a string"),
        ({"text": "a", "label": None}, "label is null; give a string or an integer"),
        ({"text": "a", "word": True}, "word is true or false; give an integer"),
        ({"rows": ["a"], "steps": 1}, "unknown key 'steps' beside rows"),
        ({"text": "a", "label": "maybe"}, "label: unknown label 'maybe'"),
    ],
)
def test_what_cannot_be_explained_is_one_line(body, said):
    class Unknowing(Toy):
        def answers(self, batch):
            return [Failed(f"label: unknown label '{one.options['label']}'") for one in batch]

    with Running(Unknowing(description(calls=EXPLAINING))) as running:
        assert message(running.ask("/explain", body)) == (422, said)


@pytest.mark.parametrize(("method", "tokens"), [("integrated_gradients", 5 * (2 + 16 + 32 + 64 + 128)), ("occlusion", 25)])
def test_tokens_of_an_explanation_count_each_time(method, tokens):
    with Running(Toy(description(calls=EXPLAINING)), max_request_tokens=20) as running:
        answer = message(running.ask("/explain", {"text": "a b c", "method": method}))
    assert answer[0] == 413
    assert answer[1].startswith(f"{tokens} tokens, counted each time that one is computed, at most 20")


def test_a_body_that_is_said_to_be_encoded_is_refused(service):
    refused = message(service.ask(body=b'{"text": "a"}', **{"Content-Encoding": "br"}))
    assert refused == (415, "the body is br, which is not supported; send uncompressed JSON")
    assert service.ask(body=b'{"text": "a"}', **{"Content-Encoding": "identity"})[0] == 200


def test_unknown_paths_and_methods(service):
    assert message(service.ask("/nothing")) == (404, "there is no /nothing; GET /docs lists what there is")
    assert message(service.ask("/predict")) == (405, "/predict takes POST, not GET")
    assert message(service.ask("/health", {}))[0] == 405
    assert message(service.ask("/predict/", {}))[0] == 404


def test_before_the_model_is_loaded_the_process_is_live_and_not_ready():
    toy = Loading()
    with Running(toy, waits=False) as running:
        assert (running.ask("/health/live")[0], running.ask("/health")[0]) == (200, 503)
        status, said, headers = running.ask(body={"rows": ["a"]})
        assert (status, said["error"]["message"]) == (503, "the model is not yet loaded; try again later")
        assert headers["retry-after"] == "2"
        assert "The model is loading" in running.ask("/")[1]
        assert running.ask("/docs")[0] == 200
        toy.free.set()
        running.wait_for(lambda: running.ask("/health")[0] == 200)
        for path in ("/health", "/health/ready"):
            status, said, _ = running.ask(path)
            assert (status, said["status"], said["workers"]) == (200, "ready", 1)


def test_metrics_and_log_count_requests_rows_tokens_and_refusals(caplog):
    caplog.set_level("INFO")
    with Running(Toy(description(calls=("predict",))), access_log=True) as running:
        running.predict("a b", "c")
        running.ask(body=b"[")
        running.ask("/secret/path%0A")
        assert message(running.ask("/encode", {"rows": []}))[0] == 404  # a call that the model does not offer
        figures = running.ask("/metrics")[1]
    for line in (
        'bert_tf_requests_total{path="/predict",status="200"} 1.0',
        'bert_tf_requests_total{path="other",status="404"} 1.0',
        'bert_tf_rejected_total{status="400"} 1.0',
        "bert_tf_rows_total 2.0",
        "bert_tf_tokens_total 7.0",
        "bert_tf_batch_rows_count 1.0",
        "bert_tf_queue_tokens 0.0",
        "bert_tf_workers 1.0",
        'bert_tf_request_seconds_count{path="/predict"} 2.0',
        'bert_tf_model{checkpoint="model.ckpt-1",digest="d1d1d1d1d1d1"} 1.0',
    ):
        assert f"\n{line}\n" in figures
    assert "secret" not in figures
    assert "/runs" not in figures
    lines = [record.getMessage() for record in caplog.records]
    assert any(line.startswith("POST /predict 200 ") and line.endswith(" ms rows=2 tokens=7 127.0.0.1") for line in lines)
    assert any(line.startswith("GET /secret/path\\n 404 ") for line in lines)


def test_reload_needs_the_switch_and_is_not_for_browsers(service):
    assert message(service.ask("/reload", b"", Origin="http://elsewhere"))[0] == 403
    assert service.ask("/reload", b"")[1] == {"model": {"name": "toy", "checkpoint": "model.ckpt-1", "digest": "d1d1d1d1d1d1"}}
    with Running() as running:
        assert running.ask("/reload", b"")[0] == 404


def test_reloads_do_not_queue():
    slow = Loading()
    with Running(Toy(description()), slow, admin=True) as running:
        first = LATER.submit(running.ask, "/reload", b"")
        running.wait_for(lambda: running.service.is_reloading)
        said = message(running.ask("/reload", b""))
        slow.free.set()
        first.result(20)
        assert said == (409, "a reload is in progress; GET /health names the current checkpoint")
        assert running.ask("/reload", b"")[0] == 200


HOSTS = [  # settings; value of Host, value of Origin, status
    (
        {},
        ("localhost:{port}", None, 200),
        ("127.0.0.1:{port}", "http://127.0.0.1:{port}", 200),
        ("LOCALHOST.", None, 200),
        ("[::1]:8500", "http://[::1]:8500", 200),
        ("evil.example:{port}", None, 403),  # its DNS points to 127.0.0.1
        ("evil.example:{port}", "http://evil.example:{port}", 403),
        ("localhost@evil.example", None, 403),
        ("192.168.1.1", None, 403),
        ("localhost:{port}", "http://evil.example", 403),
        ("localhost:{port}", "http://localhost:3000", 403),
        ("localhost:{port}", "null", 403),
    ),
    ({"allowed_hosts": "a.example, B.example"}, ("b.example", "https://b.example", 200)),
    (
        {"allowed_hosts": "b.example"},
        ("localhost:{port}", "https://b.example", 200),  # a proxy has changed Host
        ("c.example", None, 403),
    ),
    ({"host": ANY}, ("any.example", None, 200), ("any.example", "https://evil.example", 403)),
    ({"host": ANY, "allowed_hosts": "b.example"}, ("c.example", None, 403)),
]


@pytest.mark.parametrize(("settings", "requests"), [(settings, requests) for settings, *requests in HOSTS])
def test_other_hosts_and_pages_of_other_sites_are_refused(settings, requests):
    with Running(**settings) as running:
        for host, origin, expected in requests:
            sent = {"Host": host, **({"Origin": origin} if origin else {})}
            headers = {name: value.format(port=running.port) for name, value in sent.items()}
            assert running.ask(body={"text": "a"}, **headers)[0] == expected, headers
        assert running.launcher.toys[0].batches == [["a"] for *_, expected in requests if expected == 200]


@pytest.mark.parametrize("names", ["", "a,,b", "http://a", "a:80"])
def test_hosts_that_are_no_names(names):
    with pytest.raises(FlagError, match="^--allowed_hosts: '.*' is not a host name; give comma-separated names without ports"):
        Guard(Address(allowed_hosts=names))


def test_the_pages_escape_names():
    hostile = "<script>alert('1')</script>"
    with Running(Toy(description(name=hostile, labels=(hostile, "b")))) as running:
        pages = {path: running.ask(path)[1] for path in ("/", "/docs")}
    for page in pages.values():
        assert "&lt;script&gt;alert" in page
        assert "<script>alert" not in page


@pytest.mark.parametrize(("texts", "row", "other"), [(1, "a", ["a", "b"]), (2, ["a", "b"], "a")])
def test_a_model_takes_as_many_texts_as_it_was_trained_on(texts, row, other):
    reader = dataclasses.replace(READER, family=dataclasses.replace(READER.family, texts=texts))
    with Running(Toy(description(reader=reader))) as running:
        assert running.predict(row)
        status, line = message(running.ask(body={"rows": [row, other]}))
        assert (status, line[:7]) == (422, "row 1: ")
        assert "but the model was trained on" in line
        assert ("Second text" in running.ask("/")[1]) == ("took longer" in running.ask("/docs")[1]) == (texts == 2)
        example = running.ask("/openapi.json")[1]["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
        assert running.ask(body=example["example"])[0] == 200
        assert running.ask("/encode", {"rows": [row, other]})[0] == 200  # vectors are of either


def test_what_nobody_foresaw_is_no_traceback_for_the_client(service, monkeypatch, caplog):
    monkeypatch.setattr(service.service, "_read", mock.Mock(side_effect=KeyError("secret")))
    assert message(service.ask(body={"rows": []})) == (500, "internal error; see the log of the service")
    service.wait_for(lambda: "KeyError: 'secret'" in caplog.text)


def test_pages_load_nothing_from_elsewhere_and_say_so_to_the_browser(service):
    for path in ("/", "/docs", "/page.js", "/page.css"):
        status, text, headers = service.ask(path)
        assert status == 200
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "://" not in text.replace("http://HOST:PORT", "")


def test_a_body_of_many_parts_is_copied_a_few_times_alone():
    class Arriving:
        headers: ClassVar = {}

        async def stream(self):
            for _ in range(16_000):
                yield b"x" * 1000

    service = types.SimpleNamespace(limits=Limits(max_body_mb=16.0), patience=Patience())
    start = time.process_time()
    assert len(asyncio.run(app._body(Arriving(), service))) == 16_000_000
    assert time.process_time() - start < 4.0  # about 0.2; 8 GB would be copied if every 16 parts were joined with the rest
