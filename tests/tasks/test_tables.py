"""Tables in every format, whole and damaged."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import os
import sys
import threading
import tracemalloc

import pytest

from bert_tf.errors import DataError
from bert_tf.tasks import text_lines
from bert_tf.tasks.tables import RowError, open_table

BOM = b"\xef\xbb\xbf"


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a file and returns its path."""

    def write_bytes(data: bytes, name: str = "train.tsv"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write_bytes


def rows(path, *columns, **options):
    """Returns the line and the cells of each row."""
    return list(open_table(path, **options).read(columns, lambda line, cells: (line, cells)))


def cells(path, *columns, **options):
    return [found for _, found in rows(path, *columns, **options)]


def message_of(path, *columns, **options) -> str:
    with pytest.raises(DataError) as caught:
        cells(path, *columns, **options)
    return str(caught.value)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n\n", b"\r\n\r\n"])
def test_blank_lines_at_the_end_are_no_rows(write, end):
    assert len(cells(write(b"a\tb\nc\td" + end), "1", header=False)) == 2


def test_a_line_of_tabs_at_the_end_is_a_row(write):
    assert cells(write(b"a\tb\nc\td\n\t\n"), "a", "b") == [["c", "d"], ["", ""]]


@pytest.mark.parametrize("start", [b"", BOM])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(("name", "comma"), [("a.tsv", b"\t"), ("a.csv", b",")])
def test_byte_order_mark_and_crlf_are_no_part_of_a_cell(write, start, end, name, comma):
    data = start + end.join([b"sentence" + comma + b"label", b"a b" + comma + b"1", b"c" + comma + b"0", b""])
    assert cells(write(data, name), "sentence", "label") == [["a b", "1"], ["c", "0"]]


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"], ids=ascii)
def test_only_a_line_feed_ends_a_line(write, character):
    text = f"one{character}two"
    assert cells(write(f"sentence\tlabel\n{text}\t1\n".encode()), "sentence") == [[text]]


@pytest.mark.parametrize("text", ['"', 'say "no"', '"whole"', '"open', "don't", '""', 'end"'])
def test_quotes_of_tsv_are_characters_like_any_other(write, text):
    assert cells(write(f"sentence\tlabel\n{text}\t1\nnext\t0\n".encode()), "sentence") == [[text], ["next"]]


def test_blanks_around_a_cell_are_kept(write):
    assert cells(write(b"sentence\tlabel\n a \t1\n"), "sentence") == [[" a "]]


def test_last_cell_may_be_empty(write):
    assert cells(write(b"label\tsentence\n1\t\n"), "label", "sentence") == [["1", ""]]


def test_columns_come_in_the_order_asked_for(write):
    assert cells(write(b"x\ty\tz\n1\t2\t3\n"), "z", "x") == [["3", "1"]]


def test_columns_may_be_numbers_from_one_on(write):
    assert cells(write(b"x\ty\n1\t2\n"), "2", "x") == [["2", "1"]]


def test_a_name_that_is_a_number_counts_as_a_name(write):
    assert cells(write(b"2\t1\na\tb\n"), "1") == [["b"]]


def test_rows_below_a_header_keep_the_numbers_of_their_lines(write):
    assert [line for line, _ in rows(write(b"x\n1\n2\n"), "x")] == [2, 3]


def test_file_without_header_line_takes_the_names_given(write):
    assert rows(write(b"1\t2\n3\t4\n"), "y", header=("x", "y")) == [(1, ["2"]), (2, ["4"])]


def test_file_without_header_line_is_read_by_number(write):
    assert rows(write(b"1\t2\n3\t4\n"), "2", header=False) == [(1, ["2"]), (2, ["4"])]


def test_missing_file_is_named(tmp_path):
    path = tmp_path / "none.tsv"
    assert message_of(path, "x") == f"{path}: cannot read the file: No such file or directory"


def test_folder_in_place_of_a_file_is_named(tmp_path):
    assert message_of(tmp_path, "x", form="tsv") == f"{tmp_path}: cannot read the file: Is a directory; name a file"


@pytest.mark.parametrize("data", [b"", BOM, b"\n", b"\r\n\r\n", b"  \n\t\n"])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_empty_file_is_named(write, data, name):
    path = write(data, name)
    assert message_of(path, "x") == f"{path}: the file is empty"


@pytest.mark.parametrize("missing", ["text", "Sentence", "sentence ", "3", "0"])
def test_missing_column_is_named_with_what_the_header_reads(write, missing):
    path = write(b"sentence\tlabel\na\t1\n")
    assert message_of(path, missing, "label") == f"{path}:1: no column '{missing}'; the header line reads sentence | label"


def test_all_missing_columns_are_named_at_once(write):
    assert "no column 'x', 'y'; the header line" in message_of(write(b"sentence\tlabel\n"), "x", "label", "y")


def test_a_name_where_there_is_no_header_is_refused(write):
    path = write(b"a\t1\n")
    expected = f"{path}:1: no column 'label'; without a header line columns are numbers, here 1 to 2"
    assert message_of(path, "label", header=False) == expected


def test_column_that_stands_twice_is_refused(write):
    path = write(b"x\ty\tx\n1\t2\t3\n")
    assert message_of(path, "x") == f"{path}:1: column 'x' appears 2 times in the header line"
    assert cells(path, "y") == [["2"]]


@pytest.mark.parametrize("data", [b"some words\t1\nothers\t0\n", b"\nsentence\tlabel\n"], ids=["absent", "blank line above"])
def test_absent_header_is_reported_at_the_first_line(write, data):
    path = write(data)
    assert message_of(path, "sentence").startswith(f"{path}:1: no column 'sentence'; the header line reads ")


def test_long_first_line_is_shortened_in_the_message(write):
    assert len(message_of(write(b"word " * 1000), "sentence").split("reads ")[1]) == 200


def test_commas_in_place_of_tabs_are_shown_as_the_header_reads(write):
    assert message_of(write(b"sentence,label\na,1\n"), "sentence").endswith("reads sentence,label")


@pytest.mark.parametrize(("row", "number"), [(b"a", 1), (b"a\t1\t2", 3), (b"", 1), (b"a\t1\t", 3)])
def test_row_with_another_number_of_cells_is_named(write, row, number):
    path = write(b"sentence\tlabel\nfine\t0\n" + row + b"\nfine\t0\n")
    assert message_of(path, "sentence") == f"{path}:3: {number} cells where 2 are expected; cells are divided by tabs"


def test_row_is_measured_against_the_names_given(write):
    path = write(b"1\t2\n3\n")
    assert message_of(path, "y", header=("x", "y")).startswith(f"{path}:2: 1 cells where 2 are expected")


def test_invalid_utf8_is_named_with_line_and_byte(write):
    path = write(b"sentence\tlabel\nfine\t0\ncaf\xe9\t1\n")
    assert (
        message_of(path, "sentence")
        == f"{path}:3: not UTF-8: byte 4 of the line is 0xe9; iconv -f LATIN1 -t UTF-8 converts Latin-1"
    )


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_called_so(write, name, encoding):
    path = write("\ufeffsentence\tlabel\na\t1\n".encode(encoding), name)
    assert message_of(path, "sentence") == f"{path}:1: not UTF-8: the file is UTF-16; iconv -f UTF-16 -t UTF-8 converts it"


def test_header_only_has_no_rows(write):
    assert cells(write(b"sentence\tlabel\n"), "sentence") == []


def test_rows_are_made_into_what_they_stand_for(write):
    found = open_table(write(b"x\n2\n3\n")).read(["x"], lambda line, row: line * int(row[0]))
    assert list(found) == [4, 9]


def test_rows_that_cannot_be_used_are_reported_and_left_out(write):
    def make(_, row):
        if row[0] == "bad":
            raise RowError("it is bad")
        return row[0]

    path = write(b"x\ty\na\t\nbad\t\nb\nc\xff\t\nd\t\n")
    problems: list[DataError] = []
    assert list(open_table(path).read(["x"], make, problems.append)) == ["a", "d"]
    assert list(map(str, problems)) == [
        f"{path}:3: it is bad",
        f"{path}:4: 1 cells where 2 are expected; cells are divided by tabs",
        f"{path}:5: not UTF-8: byte 2 of the line is 0xff; iconv -f LATIN1 -t UTF-8 converts Latin-1",
    ]


# CSV


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (b"plain", "plain"),
        (b'"one, two"', "one, two"),
        (b'"say ""no"""', 'say "no"'),
        (b'"two\nlines"', "two\nlines"),
        (b'"blank\n\nline"', "blank\n\nline"),
        (b'""', ""),
        (b'5" wide', '5" wide'),
    ],
)
def test_csv_is_quoted(write, cell, text):
    assert cells(write(b"label,sentence\n1," + cell + b"\n0,next\n", "a.csv"), "sentence") == [[text], ["next"]]


def test_a_csv_row_of_several_lines_counts_by_its_first(write):
    assert rows(write(b'x,y\n"a\nb",1\nc,2\n', "a.csv"), "y") == [(2, ["1"]), (4, ["2"])]


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [
        (b'"never closed', "close the quote that begins in this row"),
        (b'"closed" early', "put a cell that holds a quote in quotes, and double the quote"),
        (b"old\rMac", "a carriage return alone ends no line: put its cell in quotes, or convert the file"),
    ],
)
def test_what_is_no_csv_is_named_with_what_to_do(write, cell, remedy):
    path = write(b"sentence,label\nfine,0\n" + cell + b",1\nfine,0\n", "a.csv")
    message = message_of(path, "sentence")
    assert message.startswith(f"{path}:3: not CSV: ")
    assert f"; {remedy}" in message
    assert " - do you" not in message  # Python's advice to programmers


def test_a_cell_may_be_a_long_document(write):
    text = "word " * 200_000
    assert cells(write(f"text,label\n{text},1\n".encode(), "a.csv"), "text", "label") == [[text, "1"]]


def test_a_cell_beyond_the_limit_is_named_with_what_to_do(write, monkeypatch):
    monkeypatch.setattr("bert_tf.tasks.tables._LARGEST_CELL", 1000)
    before = csv.field_size_limit(1000)
    path = write(b"text,label\nfine,0\n" + b"x" * 1001 + b",1\n", "a.csv")
    try:
        problem = message_of(path, "text")
    finally:
        csv.field_size_limit(before)
    assert problem == (
        f"{path}:3: not CSV: field larger than field limit (1000);"
        " cut the text, or close the quote that makes one cell of all that follows"
    )


@pytest.mark.parametrize(
    ("header", "remedy"),
    [
        ("text;label", "text;label, which ';' divides: save the file with commas"),
        ("text\tlabel", "text\tlabel, which tabs divide: add --file_format=tsv"),
        ("text", "text"),
        ("a;b,c", "a;b | c"),
    ],
)
def test_a_header_that_something_else_divides_is_called_so(write, header, remedy):
    path = write(f"{header}\n".encode(), "a.csv")
    assert message_of(path, "label") == f"{path}:1: no column 'label'; the header line reads {remedy}"


def test_ragged_csv_is_named(write):
    path = write(b"x,y\n1,2,3\n", "a.csv")
    assert message_of(path, "x") == f"{path}:2: 3 cells where 2 are expected; cells are divided by commas"


# JSON lines


def test_objects_are_read_by_name_in_any_order(write):
    path = write(b'{"text": "a", "label": 1}\n{"label": null, "text": "b", "more": []}\n', "a.jsonl")
    assert rows(path, "label", "text") == [(1, [1, "a"]), (2, [None, "b"])]


def test_arrays_are_rows_with_or_without_a_header(write):
    path = write(b'["text", "label"]\n["a", ["x", "y"]]\n', "a.jsonl")
    assert cells(path, "label") == [[["x", "y"]]]
    assert cells(path, "2", header=False) == [["label"], [["x", "y"]]]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"x": 1', "not JSON: Expecting ',' delimiter at character 8; write one object a line"),
        (b"17", "neither a JSON object nor an array"),
        (b"[1]", "an object is expected, as in the first line"),
        (b'{"y": 1}', "no 'x' in the object"),
        (b'{"x": 1, "x": 2}', "the key 'x' appears twice; fix or drop the row"),
        (b"", "not JSON: Expecting value at character 1; write one object a line"),
    ],
)
def test_wrong_json_is_named(write, line, problem):
    path = write(b'{"x": 1, "y": 2}\n' + line + b'\n{"x": 3}\n', "a.jsonl")
    assert message_of(path, "x") == f"{path}:2: {problem}"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"[" * 100_000 + b"]" * 100_000, "nested more than 64 deep"),
        pytest.param(
            b"1" * 5000,
            "not usable: Exceeds the limit (4300",
            marks=pytest.mark.skipif(not hasattr(sys, "get_int_max_str_digits"), reason="this Python reads any number"),
        ),
    ],
    ids=["brackets", "digits"],
)
def test_json_that_python_refuses_is_the_problem_of_its_row(write, value, problem):
    path = write(b'{"x": 1}\n{"x": ' + value + b'}\n{"x": 3}\n', "a.jsonl")
    problems: list[DataError] = []
    assert list(open_table(path).read(["x"], lambda _, row: row[0], problems.append)) == [1, 3]
    [found] = map(str, problems)
    assert found.startswith(f"{path}:2: {problem}")
    assert found.endswith("; fix or drop the row")


def test_keys_are_no_numbers(write):
    path = write(b'{"x": 1}\n', "a.jsonl")
    assert message_of(path, "1") == f"{path}:1: no column '1'; the first object has x"


# Formats and sources


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a.TSV", "a.b.tsv"])
def test_the_suffix_says_the_format(write, name):
    assert cells(write(b"x,y\n1\n", name), "x,y") == [["1"]]


def test_another_suffix_needs_the_format(write):
    path = write(b"x,y\n1,2\n", "a.data")
    assert message_of(path, "x") == f"{path}: the name does not say which format this is; add --file_format=tsv|csv|jsonl"
    assert cells(path, "y", form="csv") == [["2"]]


def test_gzip_is_unpacked(write):
    assert cells(write(gzip.compress(b"x,y\n1,2\n"), "a.csv.gz"), "y") == [["2"]]


_GZIPPED = gzip.compress(b"x\n" * 99)


@pytest.mark.parametrize("data", [b"no gzip", _GZIPPED[:-9], _GZIPPED[:12] + b"\xff" * 9], ids=["other", "cut", "torn"])
def test_damaged_gzip_is_named(write, data):
    path = write(data, "a.tsv.gz")
    assert message_of(path, "x").startswith(f"{path}: cannot read the file: ")


def test_standard_input_is_read_and_left_open(monkeypatch):
    pipe = io.BytesIO(b"x\n1\n\xff\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
    assert message_of("-", "x", form="tsv") == (
        "standard input:3: not UTF-8: byte 1 of the line is 0xff; iconv -f LATIN1 -t UTF-8 converts Latin-1"
    )
    assert not pipe.closed


@pytest.mark.parametrize(("name", "row"), [("a.tsv", "{}\tb\n"), ("a.csv", '{},"b"\n'), ("a.jsonl", '["{}", "b"]\n')])
def test_memory_does_not_grow_with_the_file(write, name, row):
    path = write("".join(row.format(n) for n in range(20_000)).encode(), name)

    def peak(count: int) -> int:
        tracemalloc.start()
        for _ in itertools.islice(open_table(path, header=False).read(["1"], lambda _, cells: cells), count):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(20_000) < peak(2_000) + 20_000


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 1 << 20)
    (tmp_path / "a.tsv").write_bytes(b"text\n" + b"x" * ((1 << 20) + 1))
    table = open_table(tmp_path / "a.tsv")
    with pytest.raises(DataError, match=r"a\.tsv:2: a line of more than 1 MB; is it a table\?"):
        list(table.read(["text"], lambda _, row: row))


def test_blank_lines_without_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_lines, "_MOST_BLANK", 3)
    (tmp_path / "a.tsv").write_bytes(b"\n" * 9)
    with pytest.raises(DataError, match=r"a\.tsv:4: more than 3 blank lines in a row"):
        open_table(tmp_path / "a.tsv")


def test_a_device_is_refused_at_once():
    with pytest.raises(DataError, match="/dev/zero: cannot read the file: it is a device, which need not end"):
        open_table("/dev/zero", form="tsv")


def test_a_pipe_is_read_where_it_is_read_once_alone(tmp_path):
    path = tmp_path / "a.tsv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"text\none\ntwo\n",))
    with pytest.raises(DataError, match="it is a pipe, which can be read only once"):
        open_table(path)
    writer.start()
    assert list(open_table(text_lines.Once(path)).read(["text"], lambda _, row: row[0])) == ["one", "two"]
    writer.join()


@pytest.mark.parametrize("column", ["9" * 5000, "٣"])
def test_a_column_that_is_no_usable_number_is_missing(tmp_path, column):
    (tmp_path / "a.tsv").write_text("one\n")
    table = open_table(tmp_path / "a.tsv", header=False)
    with pytest.raises(DataError, match="no column"):
        list(table.read([column], lambda _, row: row))
