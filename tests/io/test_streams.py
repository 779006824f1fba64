"""Standard streams that are closed, full or broken, and the two forms of the log on standard error."""

import logging
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from absl import logging as absl_logging
from tqdm import tqdm
from tqdm.std import TqdmDefaultWriteLock

from bert_tf.io import log_form

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = "import sys; from bert_tf.io import streams; streams.make_safe(); "


def shell(code: str, redirections: str) -> subprocess.CompletedProcess:
    """Runs a line of Python with the streams of a shell's redirections."""
    line = f"{sys.executable} -c '{PRELUDE}{code}' {redirections}"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&- 2>&-"])
def test_notices_are_dropped_where_nobody_reads_them(redirection):
    done = shell('print("lost", file=sys.stderr, flush=True); print("kept")', redirection)
    assert (done.returncode, done.stdout, done.stderr) == (0, "kept\n", "")


@pytest.mark.parametrize(("redirection", "reason"), [(">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")])
def test_results_that_cannot_be_written_are_an_error_once(redirection, reason):
    code = "print(1)\ntry: sys.stdout.flush()\nexcept Exception as error: print(type(error).__name__, error, file=sys.stderr)"
    done = shell(code.replace("'", '"'), redirection)
    assert done.stderr.startswith(f"OutputError standard output: cannot write: {reason}")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)


def test_a_closed_number_goes_to_no_other_file_and_is_an_error_where_it_is_read(tmp_path):
    code = f'import os; f = open("{tmp_path}/weights", "w"); os.write(2, b"log"); print(f.fileno() > 2)'
    assert shell(code, "<&- 2>&-").stdout == "True\n"
    assert (tmp_path / "weights").read_bytes() == b""
    assert "Bad file descriptor" in shell("sys.stdin.read()", "<&-").stderr


@pytest.mark.parametrize(("encoding", "expected"), [("ascii", b"caf\\xe9 a\xff\n"), ("utf-8", b"caf\xc3\xa9 a\xff\n")])
def test_any_text_and_any_name_of_a_file_can_be_printed(encoding, expected):
    line = f"PYTHONIOENCODING={encoding} {sys.executable} -c '{PRELUDE}print(\"caf\\u00e9 a\\udcff\")'"
    assert subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout == expected


@pytest.mark.parametrize(
    ("command", "redirection"), [("-m bert_tf report --help", ">&-"), ("run_classifier.py --help", ">/dev/full")]
)
def test_help_that_nobody_can_read_is_one_line(command, redirection):
    line = f"{sys.executable} {command} {redirection}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard output: cannot write: ")
    assert done.stderr.count("\n") == 1


DAY, TIME = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d"


def lines(capsys) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_short_lines_begin_with_the_time_or_the_day_and_a_second_set_up_takes_the_place_of_the_first(capsys):
    absl_logging.use_absl_handler()
    log_form.set_up(log_form.PUBLISHED, -1)
    log_form.set_up(log_form.SHORT, 0)
    noon = time.mktime((2026, 3, 2, 12, 0, 0, 0, 0, -1))
    for hours, level, message in ((0, logging.INFO, "reads"), (1, logging.WARNING, "no labels"), (36, logging.INFO, "trains")):
        record = logging.LogRecord("test", level, __file__, 1, message, (), None)
        record.created = noon + hours * 3600
        logging.getLogger().handle(record)
    first, second, third = lines(capsys)
    assert re.fullmatch(rf"{DAY} {TIME} reads", first)
    assert re.fullmatch(rf"{TIME} warning: no labels", second)
    assert re.fullmatch(rf"{DAY} {TIME} trains", third)


@pytest.mark.parametrize(("form", "verbosity"), [(log_form.PUBLISHED, 0), (log_form.SHORT, 1)])
def test_published_and_verbose_lines_say_where_they_come_from(capsys, form, verbosity):
    log_form.set_up(form, verbosity)
    absl_logging.info("read")
    (line,) = lines(capsys)
    assert re.fullmatch(rf"I\d{{4}} {TIME}\.\d{{6}} +\d+ test_streams\.py:\d+\] read", line)


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


def test_lines_of_tensorflow_appear_once_and_the_lock_of_bars_is_of_threads_alone(capsys, monkeypatch):
    of_tensorflow = logging.getLogger("tensorflow")
    monkeypatch.setattr(of_tensorflow, "handlers", [logging.StreamHandler(), logging.NullHandler()])
    log_form.set_up(log_form.PUBLISHED, 0)
    of_tensorflow.warning("heard")
    assert len(lines(capsys)) == 1
    assert len(of_tensorflow.handlers) == 1  # another's stays
    # Where processes are spawned, Python says at the end of each command that tqdm's own has leaked.
    monkeypatch.setattr(tqdm, "_lock", TqdmDefaultWriteLock(), raising=False)
    log_form.set_up(log_form.SHORT, 0)
    assert not isinstance(tqdm.get_lock(), TqdmDefaultWriteLock)
