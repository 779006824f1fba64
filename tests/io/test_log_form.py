"""The log on standard error: two forms, and a progress bar below it."""

from __future__ import annotations

import logging
import re

import pytest
from absl import logging as absl_logging
from tqdm import tqdm
from tqdm.std import TqdmDefaultWriteLock

from bert_tf.io import log_form

TIME = r"\d\d:\d\d:\d\d"


def lines(capsys) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_short_lines_begin_with_the_time_and_a_second_set_up_takes_the_place_of_the_first(capsys):
    absl_logging.use_absl_handler()
    log_form.set_up(log_form.PUBLISHED, -1)
    log_form.set_up(log_form.SHORT, 0)
    absl_logging.info("read %d rows", 3)
    absl_logging.warning("no labels")
    first, second = lines(capsys)
    assert re.fullmatch(rf"{TIME} read 3 rows", first)
    assert re.fullmatch(rf"{TIME} warning: no labels", second)


@pytest.mark.parametrize(("form", "verbosity"), [(log_form.PUBLISHED, 0), (log_form.SHORT, 1)])
def test_published_and_verbose_lines_say_where_they_come_from(capsys, form, verbosity):
    log_form.set_up(form, verbosity)
    absl_logging.info("read")
    (line,) = lines(capsys)
    assert re.fullmatch(rf"I\d{{4}} {TIME}\.\d{{6}} +\d+ test_log_form\.py:\d+\] read", line)


@pytest.mark.parametrize(("form", "seen"), [(log_form.SHORT, ["a"]), (log_form.PUBLISHED, ["b"])])
def test_a_line_of_one_form_is_not_in_the_other(capsys, form, seen):
    log_form.set_up(form, 0)
    log_form.short.info("a")
    log_form.published.info("b")
    assert [line[-1] for line in lines(capsys)] == seen


@pytest.mark.parametrize(("verbosity", "seen"), [(-1, 1), (0, 2), (1, 3)])
def test_verbosity_is_that_of_absl_for_all_loggers(capsys, verbosity, seen):
    log_form.set_up(log_form.SHORT, verbosity)
    for level in (logging.WARNING, logging.INFO, logging.DEBUG):
        logging.getLogger("another").log(level, "x")
    assert len(lines(capsys)) == seen


def test_a_bar_stays_below_the_lines(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    log_form.set_up(log_form.SHORT, 0)
    with tqdm(total=2) as bar:
        bar.update()
        absl_logging.info("above")
        shown = capsys.readouterr().err
    above, redrawn = re.fullmatch(r"(?s).*\r *\r([^\n]*)\n\r(.*)", shown).groups()
    assert above.endswith(" above")
    assert "1/2" in redrawn


def test_where_tensorflow_was_imported_before_its_lines_appear_once(capsys, monkeypatch):
    of_tensorflow = logging.getLogger("tensorflow")
    monkeypatch.setattr(of_tensorflow, "handlers", [logging.StreamHandler(), logging.NullHandler()])
    log_form.set_up(log_form.PUBLISHED, 0)
    of_tensorflow.warning("heard")
    assert len(lines(capsys)) == 1
    assert len(of_tensorflow.handlers) == 1  # another's stays


def test_the_lock_of_bars_is_of_threads_alone(monkeypatch):
    """Where processes are spawned, Python says at the end of each command that tqdm's own has leaked."""
    monkeypatch.setattr(tqdm, "_lock", TqdmDefaultWriteLock(), raising=False)
    log_form.set_up(log_form.SHORT, 0)
    assert not isinstance(tqdm.get_lock(), TqdmDefaultWriteLock)
