"""The fork servers of the service and of sweeps."""

import multiprocessing.context
import multiprocessing.util
import types
from pathlib import Path

import pytest

from bert_tf.extensions.serve import workers
from bert_tf.extensions.serve.settings import configured
from bert_tf.extensions.sweep import leader


def a_worker():
    own, _ = workers.launched(configured("/runs/toy"), 0)
    own.close()


def a_run():
    leader._forked()(types.SimpleNamespace(name="run"), Path(), {})


@pytest.mark.parametrize("start", [a_worker, a_run])
def test_it_listens_where_files_have_permissions(start, monkeypatch):
    monkeypatch.setattr(multiprocessing.util, "abstract_sockets_supported", True)  # of Python 3.9.15: open to all users
    process = types.SimpleNamespace(start=lambda: None)
    monkeypatch.setattr(multiprocessing.context.ForkServerContext, "Process", lambda *_, **__: process)
    start()
    assert not multiprocessing.util.abstract_sockets_supported
