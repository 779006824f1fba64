from __future__ import annotations

import logging
import os
import warnings

import pytest

from bert_tf.runtime import noise
from bert_tf.runtime.noise import hear_python, quiet_before_import, quiet_for_programs, quiet_python

LEVEL = "TF_CPP_MIN_LOG_LEVEL"


@pytest.fixture
def loggers():
    """The loggers that are silenced, at the level of a fresh process; given back as they were."""
    found = [logging.getLogger(name) for name in ("tensorflow", "h5py")]
    levels = [logger.level for logger in found]
    for logger in found:
        logger.setLevel(logging.NOTSET)
    yield found
    for logger, level in zip(found, levels):
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


@pytest.mark.usefixtures("loggers")
def test_warnings_of_h5py_are_silent():
    with warnings.catch_warnings():
        quiet_python()
    assert not logging.getLogger("h5py").isEnabledFor(logging.WARNING)


@pytest.mark.parametrize(
    ("module", "heard"), [("tensorflow.python.framework", 0), ("absl", 0), ("tensorflow_text", 1), ("bert_tf.commands", 1)]
)
def test_warnings_of_tensorflow_alone_are_silent(loggers, module, heard):
    del loggers
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quiet_python()
        warnings.warn_explicit("old", DeprecationWarning, "file.py", 1, module=module)
    assert len(caught) == heard
