"""The fork servers of the service and of sweeps."""

import multiprocessing.connection
import multiprocessing.context
import multiprocessing.util
import tempfile
import types
from pathlib import Path

import pytest

from bert_tf.extensions.serve import workers
from bert_tf.extensions.serve.settings import configured
from bert_tf.extensions.sweep import leader
from tests import processes


def a_worker():
    own, _ = workers.launched(configured("/runs/toy"), 0)
    own.close()


def a_run():
    leader._forked()(types.SimpleNamespace(name="run"), Path(), {})


def test_what_the_server_forks_for_others_can_be_terminated(tmp_path):
    code = """
import bert_tf.extensions.sweep.preload, os, signal
child = os.fork()
handler = signal.getsignal(signal.SIGTERM)
if not child:
    os._exit(handler != signal.SIG_DFL)
raise SystemExit(bool(os.waitpid(child, 0)[1]) or handler != signal.SIG_IGN)
"""
    (tmp_path / "server.py").write_text(code)
    assert processes.run([tmp_path / "server.py"]).returncode == 0


@pytest.mark.parametrize("start", [a_worker, a_run])
def test_it_listens_where_files_have_permissions(start, monkeypatch):
    monkeypatch.setattr(multiprocessing.util, "abstract_sockets_supported", True)  # of Python 3.9.15: open to all users
    process = types.SimpleNamespace(start=lambda: None)
    monkeypatch.setattr(multiprocessing.context.ForkServerContext, "Process", lambda *_, **__: process)
    start()
    assert not multiprocessing.util.abstract_sockets_supported


@pytest.mark.parametrize("start", [a_worker, a_run])
def test_a_temporary_folder_whose_name_is_too_long_for_a_socket_is_not_used_for_it(start, monkeypatch, tmp_path):
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setitem(multiprocessing.current_process()._config, "tempdir", None)  # as in a new process
    process = types.SimpleNamespace(start=lambda: None)
    monkeypatch.setattr(multiprocessing.context.ForkServerContext, "Process", lambda *_, **__: process)
    start()
    assert len(multiprocessing.connection.arbitrary_address("AF_UNIX")) <= 107
    assert tempfile.gettempdir() == str(folder)
