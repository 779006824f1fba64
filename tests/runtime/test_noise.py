"""What TensorFlow logs, warns of, and writes while it is loaded."""

import logging
import os
import subprocess
import sys
import warnings

import pytest

from bert_tf.runtime import noise
from bert_tf.runtime.noise import LEVEL, allowed, hear_python, quiet_before_import, quiet_for_programs, quiet_python


@pytest.fixture
def loggers():
    """The loggers that are silenced, at the level of a fresh process; given back as they were."""
    noisy = [logging.getLogger(name) for name in ("tensorflow", "h5py")]
    levels = [logger.level for logger in noisy]
    for logger in noisy:
        logger.setLevel(logging.NOTSET)
    yield noisy
    for logger, level in zip(noisy, levels):
        logger.setLevel(level)


@pytest.mark.parametrize(("before", "after"), [(None, "3"), ("0", "0")], ids=["unset", "set by the user"])
def test_silences_the_libraries_unless_the_user_says_otherwise(monkeypatch, before, after):
    monkeypatch.delenv(LEVEL, raising=False)
    if before is not None:
        monkeypatch.setenv(LEVEL, before)
    quiet_before_import()
    assert os.environ[LEVEL] == after


DEPRECATED = "From x.py:1: Estimator (from y) is deprecated and will be removed in a future version.\nInstructions: none"


@pytest.mark.parametrize(
    ("level", "message", "quiet", "published"),
    [
        (logging.INFO, "Graph was finalized.", 0, 1),
        (logging.WARNING, DEPRECATED, 0, 1),
        (logging.WARNING, "Collective ops may deadlock", 1, 1),
        (logging.INFO, "Initialize variable bert/pooler/dense/bias:0 from checkpoint c with d", 0, 0),
        (logging.ERROR, "out of memory", 1, 1),
    ],
)
@pytest.mark.usefixtures("loggers")
def test_what_tensorflow_says_is_heard_where_it_says_something(level, message, quiet, published, caplog):
    for hear, heard in ((quiet_python, quiet), (hear_python, published), (quiet_python, quiet)):
        caplog.clear()
        with warnings.catch_warnings(), caplog.at_level("INFO"):
            hear()
            logging.getLogger("tensorflow").log(level, message)
        assert len(caplog.messages) == heard


OF_TENSORFLOW = "/site/tensorflow_estimator/python/estimator.py"


@pytest.mark.parametrize(
    ("level", "path", "message", "heard"),
    [
        (logging.INFO, OF_TENSORFLOW, "Graph was finalized.", False),
        (logging.WARNING, OF_TENSORFLOW, "Collective ops may deadlock", True),
        (logging.WARNING, OF_TENSORFLOW, f"From {OF_TENSORFLOW}:1: f (from y) is deprecated", False),
        (logging.WARNING, OF_TENSORFLOW, f"From {noise.home.PACKAGE}/estimator/run.py:1: f (from y) is deprecated", False),
        (logging.WARNING, OF_TENSORFLOW, "From /home/me/train.py:1: f (from y) is deprecated", True),
        (logging.INFO, "/home/me/train.py", "a line of mine", True),
    ],
)
@pytest.mark.usefixtures("loggers")
def test_a_program_hears_what_it_calls_and_logs_itself(level, path, message, heard):
    logger = logging.getLogger("tensorflow")
    with warnings.catch_warnings():
        quiet_for_programs()
    assert logger.level == logging.NOTSET
    assert bool(logger.filter(logger.makeRecord(logger.name, level, path, 1, message, (), None))) == heard
    quiet_python()


@pytest.mark.parametrize(
    ("module", "heard"), [("tensorflow.python.framework", 0), ("absl", 0), ("tensorflow_text", 1), ("bert_tf.operations", 1)]
)
def test_warnings_of_tensorflow_alone_are_silent(loggers, module, heard):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quiet_python()
        warnings.warn_explicit("old", DeprecationWarning, "file.py", 1, module=module)
    assert len(caught) == heard
    assert not loggers[1].isEnabledFor(logging.WARNING)  # of h5py


HEADING = b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
INFO = b"I0000 00:00:1795446098.248589   24071 port.cc:153] oneDNN custom operations are on.\n"
ERROR = b"E0000 00:00:1758131045.203298 3722035 cuda_dnn.cc:8579] Unable to register cuDNN factory\n"
OLDER = b"2025-09-17 14:44:05.157831: I external/local_xla/cudart_stub.cc:32] Could not find cuda drivers\n"
OURS = b"12:00:01 output to out/mrpc\n"
OTHERS = (b"Illegal instruction\n", b"E1 is no line of TensorFlow's\n", b"I cannot open the plug-in\n", b"E   assert 1 == 2\n")
LINES = (HEADING, INFO, ERROR, OLDER, OURS, *OTHERS)


@pytest.mark.parametrize(
    ("least", "hidden"), [(0, ()), (1, (HEADING, INFO, OLDER)), (2, (HEADING, INFO, OLDER)), (3, (HEADING, INFO, OLDER, ERROR))]
)
def test_lines_of_tensorflow_are_shown_from_a_severity_on(least, hidden):
    assert {line for line in LINES if not allowed(line, least)} == set(hidden)


CODE = """
import os, sys, threading
from bert_tf.runtime.noise import held_back

def say(text):
    os.write(2, text)

with held_back:
    say({info!r})
    inner = threading.Thread(target=lambda: held_back.__enter__() or say({ours!r}) or held_back.__exit__(None))
    inner.start()
    inner.join()
    print("of Python", file=sys.stderr)
    say({info!r})
{after}
"""


FORK = """    sys.stderr.flush()
    child = os.fork()
    if not child:
        say(b"of the child")
        os._exit(0)
    os.waitpid(child, 0)
say(b" of the parent")"""
ALL = INFO + OURS + b"of Python\n" + INFO


@pytest.mark.parametrize(
    ("after", "level", "expected"),
    [
        ("    pass\nsay(b'afterwards')", "3", OURS + b"of Python\nafterwards"),
        ("    pass", "0", ALL),  # the user wants to hear
        ("    raise ImportError('libtensorflow')", "3", ALL + b"Traceback"),
        (FORK, "3", b"of the child" + OURS + b"of Python\n of the parent"),  # a forked process writes for itself
    ],
    ids=["ours", "all", "error", "fork"],
)
def test_lines_are_passed_on_in_their_order(after, level, expected):
    code = CODE.format(info=INFO, ours=OURS, after=after)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, env={**os.environ, LEVEL: level})
    assert done.stderr.startswith(expected)
    assert b"Traceback" in expected or done.stderr == expected


CLOSED = "import os; os.close(2)\nfrom bert_tf.runtime.noise import held_back\nwith held_back: print('through')"


@pytest.mark.parametrize("code", [CODE.format(info=INFO, ours=OURS, after="    pass\nprint('through')"), CLOSED])
def test_a_standard_error_that_nobody_reads_or_that_is_closed_is_no_error(code):
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**os.environ, LEVEL: "3"}
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=writer, check=True, env=environment)
    os.close(writer)
    assert done.stdout == b"through\n"


def test_where_nothing_can_be_held_all_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(noise, "_file", lambda: (tmp_path / "no" / "file").open("w+b"))
    monkeypatch.setenv(LEVEL, "3")
    held = noise._HeldBack()
    with held:
        assert held._file is None
    monkeypatch.setattr(noise, "_is_too_old", lambda: True)  # TensorFlow aborts, and says why
    assert noise._min_severity() == 0
