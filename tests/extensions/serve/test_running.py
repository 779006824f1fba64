"""Settings of a service, the checkpoint that it watches, and what keeps it from running."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
from unittest import mock

import pytest

import bert_tf
from bert_tf.errors import DeviceError, FlagError
from bert_tf.extensions.serve import command, server, workers
from bert_tf.extensions.serve.service import Watch
from bert_tf.extensions.serve.settings import Address, configured
from tests.extensions.serve.fakes import Launcher, Toy, description


@pytest.mark.parametrize("name", ["uvicorn", "starlette", "prometheus_client"])
def test_a_missing_package_is_named(monkeypatch, name):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda asked: None if asked == name else find_spec(asked))
    with pytest.raises(FlagError, match=f"serve needs {name}: pip install 'uvicorn"):
        command.run_service(configured("out"))


def test_a_service_within_an_event_loop_is_one_line():
    async def notebook():
        bert_tf.serve("out")

    with pytest.raises(FlagError, match="serve: an event loop runs here, as in a notebook; start it in a terminal"):
        asyncio.run(notebook())


def test_a_port_that_is_taken_an_address_of_another_machine_or_a_run_that_is_not_there(tmp_path, monkeypatch):
    with server.listening(Address(port=0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(DeviceError, match=f"cannot listen on 127.0.0.1 port {port}: Address already in use; name others"):
            server.listening(Address(port=port))
    for host in ("192.0.2.1", "model..local", "a" * 64):
        with pytest.raises(DeviceError, match=f"cannot listen on {host} port 8500: .*; name others with --host and --port"):
            server.listening(Address(host=host))
    monkeypatch.setattr(workers, "launched", Launcher(Toy(description(), problem="no such run")))
    with pytest.raises(workers.StartError, match="^no such run$"):
        command.run_service(configured(str(tmp_path / "nothing"), port=0))


def test_each_goes_to_its_group():
    of_model = {"task_name": "MRPC", "encode": True, "pooling": "cls", "max_seq_length": 64, "precision": "bfloat16"}
    config = configured("out", port=1, workers=2, max_rows=3, grace_s=4, **of_model)
    assert (config.address.port, config.computing.workers, config.limits.max_rows, config.patience.grace_s) == (1, 2, 3, 4.0)
    assert (config.task_name, config.extensions.vectors.options.pooling) == ("MRPC", "cls")
    assert config.loading == {"max_seq_length": 64, "precision": "bfloat16"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_delay_ms": float("nan")}, "--max_delay_ms=nan: not a number"),
        ({"layers": "x"}, "--layers=x: write whole numbers"),
        ({"watch": True, "run": "hub:org/name"}, "--watch: hub:org/name is not a local path, and models of the hub are"),
        ({"watch": True, "run": "ot/mrpc"}, "--watch: ot/mrpc is not a local path, and .*; correct the path, or leave out"),
        *(({"watch": True, "run": name}, "--watch: .* is a pattern, whose matches may change") for name in ("ou*", "out:all")),
    ],
)
def test_what_cannot_be_is_one_line(values, message):
    with pytest.raises(FlagError, match=message):
        configured(values.pop("run", "out"), **values)


@pytest.mark.parametrize(
    ("files", "watched", "changed", "answers"),
    [
        (["checkpoint"], "", "checkpoint", [False, True, False]),  # once it has come to rest
        (["checkpoint"], "", None, [False, False, False]),  # the run is gone
        (["checkpoint", "best/checkpoint"], "", "checkpoint", [False, False, False]),
        (["checkpoint", "best/checkpoint"], "", "best/checkpoint", [False, True, False]),
        (["model.safetensors", "config.json"], "", "model.safetensors", [False, True, False]),
        (["adapter_model.safetensors", "adapter_config.json"], "", "adapter_config.json", [False, True, False]),
        (["adapter_model.safetensors", "README.md"], "", "README.md", [False, False, False]),
        (["pytorch_model.bin", "vocab.txt"], "", "vocab.txt", [False, True, False]),
        (["model.ckpt-20.index"], "model.ckpt-20", "model.ckpt-20.index", [False, True, False]),
    ],
)
def test_a_changed_file(tmp_path, files, watched, changed, answers):
    (tmp_path / "best").mkdir()
    for name in files:
        (tmp_path / name).write_text("1")
    watch = Watch(tmp_path / watched)
    assert not watch.has_changed()
    if changed is None:
        (tmp_path / files[0]).unlink()
    else:
        (tmp_path / changed).write_text("20")
    assert [watch.has_changed() for _ in range(3)] == answers


def test_a_drive_that_does_not_answer_is_looked_at_again(tmp_path, monkeypatch, caplog):
    (tmp_path / "checkpoint").write_text("1")
    watch = Watch(tmp_path)
    (tmp_path / "checkpoint").write_text("20")
    assert not watch.has_changed()
    with monkeypatch.context() as patch:
        patch.setattr(Watch, "_look", mock.Mock(side_effect=OSError(errno.ESTALE, "stale")))
        assert [watch.has_changed() for _ in range(3)] == [False] * 3
    assert caplog.text.count(f"{tmp_path}: cannot be watched") == 1
    assert watch.has_changed()
