"""How command lines are read, and how a command ends: in lines for the user, or a report of what nobody foresaw."""

import errno
import os
import signal
import sys
import tempfile
import threading

import pytest
import tensorflow as tf

from bert_tf.cli import process
from bert_tf.cli.command_line import Flag, action_of, parse_flags, read_with_words
from bert_tf.cli.process import HelpAsked, run_command
from bert_tf.errors import FlagError, PreflightError


def ending_of(error: BaseException, capsys) -> tuple[int, str]:
    def work():
        raise error

    status = run_command(work, help_text=str, stopped="stopped")
    return status, capsys.readouterr().err


def refused(number: int, path: object) -> OSError:
    return OSError(number, os.strerror(number), path)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (refused(errno.EACCES, "data/train.tsv"), "data/train.tsv: Permission denied; grant this user access"),
        (refused(errno.EACCES, b"data/train.tsv"), "data/train.tsv: Permission denied; grant this user access"),
        (refused(errno.EROFS, "out"), "out: Read-only file system; name another place"),
        (refused(errno.EMFILE, "x"), "x: Too many open files; raise the limit of open files (ulimit -n)"),
        (refused(errno.ENOSPC, None), "No space left on device; free some space"),
        (refused(errno.ESTALE, None), "Stale file handle; the network drive has lost it; try again"),
        (refused(errno.ENODEV, None), "No such device"),
        (refused(errno.ENOMEM, None), "Cannot allocate memory; free memory, or raise the limit (ulimit -v)"),
        (RuntimeError("can't start new thread"), "can't start new thread; the machine or its limits (ulimit -u) allow no more"),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found"), "No usable temporary directory found; free"),
        (RuntimeError("Symlink loop from '/tmp/out'"), "'/tmp/out': a link leads to itself"),
        (MemoryError(), "out of memory on the host; lower the batch size"),
        (MemoryError("Unable to allocate 7 GiB"), "out of memory on the host: Unable to allocate 7 GiB; lower the batch size"),
        (ModuleNotFoundError("No module named 'yaml'", name="yaml"), "No module named 'yaml': pip install -r requirements.txt"),
        (ImportError("libtensorflow_cc.so: failed to map segment"), "libtensorflow_cc.so: failed to map segment; reinstall"),
        (tf.errors.ResourceExhaustedError(None, None, "OOM\nmore"), "out of memory on the host: OOM; lower the batch size"),
        (tf.errors.FailedPreconditionError(None, None, "out/eval is not a directory"), "out/eval is not a directory; move"),
        (tf.errors.PermissionDeniedError(None, None, "out/eval; Permission denied\nmore"), "out/eval; Permission denied"),
        (UnicodeEncodeError("utf-8", "a\udcff", 1, 2, "surrogates not allowed"), "'a\\udcff': cannot be written in utf-8"),
        (UnicodeEncodeError("ascii", "é.tsv", 0, 1, "ordinal not in range"), "'é.tsv': cannot be written in ascii"),
        (PreflightError(["one", "two\nlines"]), "one\nerror: two lines"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)  # fmt: skip
def test_what_a_user_can_change_is_one_line(error, line, capsys):
    status, said = ending_of(error, capsys)
    assert status == 2
    assert said.startswith(f"error: {line}")
    assert said.count("\n") == 1 + line.count("\n")


def test_a_working_directory_that_is_gone_is_named(monkeypatch, capsys):
    monkeypatch.setattr(process, "_has_working_directory", lambda: False)
    assert ending_of(refused(errno.ENOENT, None), capsys) == (
        2,
        "error: the working directory was deleted; change to another one (cd)\n",
    )


NEW = tf.errors.FailedPreconditionError(None, None, "new")


@pytest.mark.parametrize("error", [ZeroDivisionError("by\nzero"), NEW, RecursionError(), OSError("no number"), KeyError("x")])
def test_what_nobody_foresaw_leaves_a_report_in_the_output_folder(error, tmp_path, capsys):
    process.reports_go_to(tmp_path)
    status, said = ending_of(error, capsys)
    (report,) = tmp_path.iterdir()
    assert status == 70
    assert said.startswith(f"error: internal error: {type(error).__name__}")
    assert said.endswith(f"; this is a bug in bert_tf: report it with {report}\n")
    assert said.count("\n") == 1
    assert "Traceback (most recent call last)" in report.read_text()
    assert f"raise error\n{type(error).__module__}.{type(error).__name__}".replace("builtins.", "") in report.read_text()


def test_without_an_output_folder_the_report_is_a_temporary_file_and_where_no_folder_takes_it_the_error_is_shown(
    tmp_path, monkeypatch, capsys
):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path / "temporary"))
    process.reports_go_to(tmp_path / "none")
    assert ending_of(ZeroDivisionError(), capsys)[0] == 70
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(tmp_path / "none"))
    process.reports_go_to(tmp_path / "none")
    status, said = ending_of(ZeroDivisionError("x"), capsys)
    assert (status, said.count("\n")) == (70, 1)
    assert "internal error: ZeroDivisionError: x; " in said


def test_an_error_in_another_thread_is_one_line_too(tmp_path, capsys):
    process.reports_go_to(tmp_path)

    def work():
        thread = threading.Thread(target=lambda: [][0], name="reader")
        thread.start()
        thread.join()
        return 0

    assert run_command(work, help_text=str, stopped="stopped") == 70
    said = capsys.readouterr().err
    assert said.startswith("error: internal error in thread reader: IndexError: list index out of range")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "status", "said"), [(None, 0, ""), (3, 3, ""), ("no such runner", 2, "error: no such runner\n")]
)
def test_a_library_that_ends_the_process_keeps_its_status_and_ctrl_c_is_one_line(code, status, said, capsys):
    assert ending_of(SystemExit(code), capsys) == (status, said)
    assert ending_of(KeyboardInterrupt(), capsys) == (130, "error: stopped\n")


def test_sigterm_is_as_ctrl_c(capsys, tmp_path):
    def work():
        with tempfile.TemporaryDirectory(dir=tmp_path):
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        assert run_command(work, help_text=str, stopped="stopped") == 130
        assert (capsys.readouterr().err, list(tmp_path.iterdir())) == ("error: stopped\n", [])
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("lines", [1, 100_000])  # within what is buffered, and beyond
def test_nobody_who_reads_on_is_no_traceback(monkeypatch, capsys, lines):
    read, write = os.pipe()
    os.close(read)

    def work():
        sys.stdout.write("a line of a table\n" * lines)
        return 0

    with os.fdopen(write, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert run_command(work, help_text=str, stopped="stopped") == 141
    assert capsys.readouterr().err == ""


ROWS = (Flag("top", int, 3, "how many", 0), Flag("share", float, 0.5, "how much", highest=1e9), Flag("name", str, None, ""))


def test_words_and_flags_come_in_any_order():
    words, values = read_with_words(["memory", "a.txt", "--top=5", "b.txt"], ROWS)
    assert (words, values["top"].value) == (["a.txt", "b.txt"], 5)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        *(
            (f"--share={value}", r"^flag --share=\S+: not a number up to 1000000000\.0$")
            for value in ("9999999999", "nan", "inf", "-1e400")
        ),
        ("--top=\udcff", r"^'--top=\\udcff': not valid UTF-8; rename the file, or write the flag into a --flagfile$"),
        ("--name ", "^--name is empty"),
        ("--flagfile=", "^--flagfile is empty"),
        ("--undefok=", "^--undefok is empty"),
        ("a ", "^report: a name is empty"),
        ("--flagfile=/dev/zero", "^--flagfile=/dev/zero: it is a device"),
        ("--flagfile /dev/zero", "^--flagfile=/dev/zero: it is a device"),
        ("-flagfile=/dev/zero", "^--flagfile=/dev/zero: it is a device"),
    ],
)
def test_what_cannot_be_read_is_one_line(argv, message):
    reads = read_with_words if argv == "a " else parse_flags
    with pytest.raises(FlagError, match=message):
        reads(["report", *argv.split(" ")], ROWS)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("--top=3".encode("utf-16"), "the file is UTF-16; iconv"),
        (b"\xef\xbb\xbf--top=3", "it begins with a byte order mark; save it as UTF-8 without one"),
        (b"--top=3\n--name=caf\xe9", "line 2: not UTF-8"),
    ],
)
def test_a_flag_file_in_another_encoding_is_named(tmp_path, data, message):
    (tmp_path / "flags").write_bytes(data)
    with pytest.raises(FlagError, match=f"^--flagfile={tmp_path}/flags: {message}"):
        parse_flags(["report", f"--flagfile={tmp_path}/flags"], ROWS)


def test_a_locale_without_the_letters_of_a_name_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    told = "the locale's encoding is ascii; set PYTHONUTF8=1"
    with pytest.raises(FlagError, match=f"^--top=é: {told} and write the flag into a --flagfile, or rename the file$"):
        parse_flags(["memory", "--top=\udcc3\udca9"], ROWS)
    (tmp_path / "flags").write_text("--name=é", encoding="utf-8")
    with pytest.raises(FlagError, match=f"^--flagfile={tmp_path}/flags: {told}$"):
        parse_flags(["memory", f"--flagfile={tmp_path}/flags"], ROWS)


def test_an_action_is_the_first_word():
    assert action_of(["data", "check", "fetch"], ("fetch", "check")) == "check"
    for argv in (["data"], ["data", "--help"], ["data", "-h"], ["data", "--help=all"]):
        with pytest.raises(HelpAsked):
            action_of(argv, ("fetch",))
    with pytest.raises(FlagError, match=r"^data: unknown action 'fetsch'; did you mean fetch\?"):
        action_of(["data", "fetsch"], ("fetch", "check"))
