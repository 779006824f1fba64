"""What keeps a service from running is one line."""

from __future__ import annotations

import importlib.util

import pytest

from bert_tf.errors import DeviceError, FlagError
from bert_tf.service import running, workers
from bert_tf.service.settings import Address, configured
from tests.service.fakes import Launcher, Toy, description


@pytest.mark.parametrize("name", ["uvicorn", "starlette", "prometheus_client"])
def test_a_missing_package_is_named(monkeypatch, name):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda asked: None if asked == name else found(asked))
    with pytest.raises(FlagError, match=f"serve needs {name}: pip install 'uvicorn"):
        running.run_service(configured("out"))


def test_a_port_that_is_taken_or_an_address_of_another_machine():
    with running.listening(Address(port=0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(DeviceError, match=f"cannot listen on 127.0.0.1 port {port}: Address already in use; name others"):
            running.listening(Address(port=port))
    with pytest.raises(DeviceError, match="cannot listen on 192.0.2.1 port 8500: .*; name others with --host and --port"):
        running.listening(Address(host="192.0.2.1"))


def test_a_run_that_is_not_there_ends_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "launched", Launcher(Toy(description(), problem="no such run")))
    with pytest.raises(workers.StartError, match="^no such run$"):
        running.run_service(configured(str(tmp_path / "nothing"), port=0))
