"""What a user names is refused before a read that would not end; JSON and YAML are read strictly."""

import builtins
import errno
import json
import math
import os
import socket
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from bert_tf.io import documents, files, scratch
from bert_tf.io.documents import DocumentError

DAY_S = 24 * 3600


@pytest.fixture
def odd(tmp_path):
    """A folder of what is no file."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(os.fspath(tmp_path / "socket"))
        yield tmp_path


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("folder", "Is a directory; name a file"),
        ("pipe", "it is a pipe, which can be read only once; save its output to a file"),
        ("socket", "it is a socket; name a file"),
        ("/dev/zero", "it is a device, which may never end; name a file"),
        ("loop", "Too many levels of symbolic links; a link leads to itself"),
        ("dangling", "no such file"),
        ("none", "no such file"),
        ("file/below", "Not a directory; a part of the path is a file"),
        ("n" * 300, "File name too long; most file systems allow 255 bytes a name"),
        ("a\0b", "the name holds a NUL character"),
    ],
)
def test_says_why_a_path_is_no_file(odd, name, why):
    assert files.missing(odd / name) == why
    with pytest.raises(OSError, match=" "):
        files.read_bytes(odd / name)


def test_says_why_a_path_is_no_folder_or_denied(odd, monkeypatch):
    loop = "Too many levels of symbolic links; a link leads to itself"
    expected = {"none": "no such folder", "file": "it is not a folder", "loop": loop, "folder": None}
    assert {name: files.missing_folder(odd / name) for name in expected} == expected

    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(builtins, "open", refuse)
    assert files.missing(odd / "file").startswith("Permission denied; grant this user access")


def test_reads_what_there_is_up_to_a_limit_and_takes_what_is_not_there_yet_for_a_file(odd):
    (odd / "file").write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert files.read_text(odd / "file") == "a\nb"
    with pytest.raises(OSError, match="it is larger than 0 MB; is it the right file?"):
        files.read_bytes(odd / "file", most=3)
    assert [name for name in ("file", "none", "folder", "pipe", "/dev/null") if files.is_plain(odd / name)] == ["file", "none"]


NO_VALUE = "YAML reads a value as a date, number or switch, which it is not"


def error_of(read, text) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read(text)
    return caught.value


def billion(levels: int) -> str:
    """Lists of ten aliases of the list before."""
    lines = ["l0: &a0 [x]"]
    lines += [f"l{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('{"a": 1,\n "b": "a",\n "a": 2}', 3, "the key 'a' appears twice"),
        ('{"x": {"a": ":", "b": {"a": 1}},\n "y": [{"a": 1,\n "\\u0061": 2}]}', 3, "the key 'a' appears twice"),
        ('{"a": 1,\n 2}', 2, "not JSON: Expecting property name enclosed in double quotes at character 2"),
        ('{"a": NaN}', None, "nan where a number is expected"),
        ('{"a": -Infinity}', None, "-inf where a number is expected"),
        ("[" * 100 + "]" * 100, None, "nested more than 64 deep"),
        ("[" * 100_000 + "]" * 100_000, None, "nested more than 64 deep"),
        ('{"a": "\\ud800"}', None, "the text '\\ud800' holds an unpaired surrogate '\\ud800'"),
        ('{"a\\u0000": 1}', None, "the text 'a\\x00' holds a NUL character"),
        ('{"a": 1' + "0" * 30 + "}", None, "a number of 100 bits"),
    ],
    ids=str,
)
def test_json_that_cannot_be_used(text, line, problem):
    error = error_of(documents.parse_json, text)
    assert (error.line, error.problem) == (line, problem)


@pytest.mark.parametrize("limit", [1000, 20_000])
def test_yaml_that_is_nested_too_deeply_is_refused_whatever_the_recursion_limit(limit):
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        assert error_of(documents.parse_yaml, "a: " + "[" * 500 + "]" * 500).problem == "nested more than 64 deep"
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' appears twice"),
        ("t:\n  - {name: x, file: y}\n  - {name: x,\n     name: y}\n", 4, "the key 'name' appears twice"),
        ('{"a": 1,\n"a": 2}', 2, "the key 'a' appears twice"),
        ("a: [x\nb: y\n", 2, "neither YAML nor JSON: expected ',' or ']', but got ':'"),
        ("a: 1\nb: \0\n", 2, "neither YAML nor JSON: special characters are not allowed"),
        ('a: "\\0"\n', None, "the text '\\x00' holds a NUL character"),
        ('a: "\\ud800"\n', None, "the text '\\ud800' holds an unpaired surrogate '\\ud800'"),
        ('{"a": "caf\\udce9"}', None, "the text 'caf\\udce9' holds an unpaired surrogate '\\udce9'"),
        ("[" * 80 + "]" * 80, None, "nested more than 64 deep"),
        ("a: &b\n  - *b\n", 1, "an alias (*name) that contains itself"),
        (billion(9), 6, "more than 100000 values, with aliases (*name) written out"),
        ("a: 0x" + "f" * 5000, None, "a number of 20000 bits"),
        ("a: !!python/name:os.system\n", 1, None),
        *((f"a: {value}", None, NO_VALUE) for value in ("!!bool foo", "!!int ''", "!!float ''", "!!timestamp foo")),
    ],
    ids=lambda value: str(value)[:20],
)
def test_yaml_that_cannot_be_used(text, line, problem):
    error = error_of(documents.parse_yaml, text)
    assert error.problem.startswith(problem or "")
    assert error.line == line or error.problem.startswith("nested")


def test_values_are_those_of_the_text_with_aliases_and_merges_within_measure_and_a_row_may_hold_anything():
    for read in (documents.parse_json, documents.parse_yaml):
        text = '{"a": [1, 2.5, null, true], "b": {"a": "\\ud83d\\ude00"}}'
        assert read(text) == {"a": [1, 2.5, None, True], "b": {"a": "\U0001f600"}}
    text = "t: &t {name: custom, text_a: x}\nu: *t\nv: {<<: *t, name: MRPC}\n"
    assert documents.parse_yaml(text)["v"] == {"name": "MRPC", "text_a": "x"}
    assert documents.parse_json('{"command": "--data_dir=/caf\\udce9"}', has_paths=True) == {"command": "--data_dir=/caf\udce9"}
    assert documents.json_value('["\\u0000", "\\ud800", Infinity, 1' + "0" * 30 + "]")[:3] == ["\0", "\ud800", math.inf]


def test_a_file_that_is_too_long_or_not_utf8_is_refused(tmp_path):
    with open(tmp_path / "a", "wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(OSError, match="larger than 16 MB"):
        documents.read_text(tmp_path / "a")
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa\nb\xff\n")
    assert error_of(documents.read_text, tmp_path / "a").place("a") == "a:2"
    assert error_of(documents.parse_yaml, "- a\n" * 300_000).problem == "more than 1 MB of YAML; write JSON"


def test_what_is_not_a_number_is_refused_where_that_is_asked_for_and_written_as_null():
    for text in ("NaN", '{"a": [Infinity]}', "-1e400"):
        assert documents.json_value(text) is not None
        with pytest.raises(DocumentError):
            documents.json_value(text, finite=True)
    value = {"a": math.nan, "b": [math.inf, (1.5, -math.inf)], "c": {"d": np.float64("nan")}}
    assert documents.to_json(value) == '{"a": null, "b": [null, [1.5, null]], "c": {"d": null}}'
    value = {"b": [1, 2.5, True, None, "é"], "a": {"x": ()}}
    assert documents.to_json(value, indent=2, sort_keys=True) == json.dumps(value, indent=2, sort_keys=True)


def test_temporary_folders_that_no_process_holds_are_deleted_after_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "bert_tf-1000").mkdir()  # of shipped models
    used, young, left = scratch.folder(), scratch.folder(), tmp_path / f"{scratch._PREFIX}left"
    left.mkdir()
    for path in (Path(used.name), left, tmp_path / "bert_tf-1000"):
        os.utime(path, (time.time() - 2 * DAY_S,) * 2)
    with scratch.folder() as folder:
        names = {folder, used.name, young.name, str(tmp_path / "bert_tf-1000")}
        assert set(map(str, tmp_path.iterdir())) == names
    used.cleanup()
    young.cleanup()
