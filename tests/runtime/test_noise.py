from __future__ import annotations

import logging
import os
import warnings

import pytest

from bert_tf.runtime.noise import quiet_before_import, quiet_python

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


@pytest.mark.parametrize(("level", "heard"), [(logging.WARNING, False), (logging.ERROR, True)])
def test_warnings_of_loggers_are_silent_and_errors_are_not(loggers, level, heard):
    with warnings.catch_warnings():
        quiet_python()
    assert [logger.isEnabledFor(level) for logger in loggers] == [heard, heard]


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
