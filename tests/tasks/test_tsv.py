"""Tab-separated files, whole and damaged."""

from __future__ import annotations

import pytest

from bert_tf.errors import DataError
from bert_tf.tasks.tsv import read_rows, read_table

BOM = b"\xef\xbb\xbf"


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a file and returns its path."""

    def write_bytes(data: bytes):
        path = tmp_path / "train.tsv"
        path.write_bytes(data)
        return path

    return write_bytes


def cells(path, *columns, **options):
    return [row.cells for row in read_table(path, columns, **options)]


def message_of(path, *columns, **options) -> str:
    with pytest.raises(DataError) as caught:
        cells(path, *columns, **options)
    return str(caught.value)


def test_rows_are_numbered_from_one(write):
    assert list(read_rows(write(b"a\tb\nc\td\n"))) == [(1, ["a", "b"]), (2, ["c", "d"])]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n\n", b"\r\n\r\n"])
def test_blank_lines_at_the_end_are_no_rows(write, end):
    assert len(list(read_rows(write(b"a\tb\nc\td" + end)))) == 2


@pytest.mark.parametrize("start", [b"", BOM])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_byte_order_mark_and_crlf_are_no_part_of_a_cell(write, start, end):
    data = start + end.join([b"sentence\tlabel", b"a b\t1", b"c\t0", b""])
    assert cells(write(data), "sentence", "label") == [["a b", "1"], ["c", "0"]]


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"], ids=ascii)
def test_only_a_line_feed_ends_a_line(write, character):
    text = f"one{character}two"
    assert cells(write(f"sentence\tlabel\n{text}\t1\n".encode()), "sentence") == [[text]]


@pytest.mark.parametrize("text", ['"', 'say "no"', '"whole"', '"open', "don't", '""', 'end"'])
def test_quotes_are_characters_like_any_other(write, text):
    assert cells(write(f"sentence\tlabel\n{text}\t1\nnext\t0\n".encode()), "sentence") == [[text], ["next"]]


def test_blanks_around_a_cell_are_kept(write):
    assert cells(write(b"sentence\tlabel\n a \t1\n"), "sentence") == [[" a "]]


def test_last_cell_may_be_empty(write):
    assert cells(write(b"label\tsentence\n1\t\n"), "label", "sentence") == [["1", ""]]


def test_columns_come_in_the_order_asked_for(write):
    assert cells(write(b"x\ty\tz\n1\t2\t3\n"), "z", "x") == [["3", "1"]]


def test_rows_below_a_header_keep_the_numbers_of_their_lines(write):
    assert [row.line for row in read_table(write(b"x\n1\n2\n"), ["x"])] == [2, 3]


def test_file_without_header_line_takes_the_names_given(write):
    rows = read_table(write(b"1\t2\n3\t4\n"), ["y"], header=("x", "y"))
    assert list(rows) == [(1, ["2"]), (2, ["4"])]


def test_missing_file_is_named(tmp_path):
    path = tmp_path / "none.tsv"
    assert message_of(path, "x") == f"{path}: cannot read the file: No such file or directory"


def test_folder_in_place_of_a_file_is_named(tmp_path):
    assert message_of(tmp_path, "x") == f"{tmp_path}: cannot read the file: Is a directory"


@pytest.mark.parametrize("data", [b"", BOM, b"\n", b"\r\n\r\n", b"  \n\t\n"])
def test_empty_file_is_named(write, data):
    path = write(data)
    assert message_of(path, "x") == f"{path}: the file is empty"


@pytest.mark.parametrize("missing", ["text", "Sentence", "sentence "])
def test_missing_column_is_named_with_what_the_header_reads(write, missing):
    path = write(b"sentence\tlabel\na\t1\n")
    assert message_of(path, missing, "label") == (
        f"{path}:1: no column '{missing}' in the header line; it reads sentence | label"
    )


def test_all_missing_columns_are_named_at_once(write):
    assert "no column 'x', 'y' in the header line" in message_of(write(b"sentence\tlabel\n"), "x", "label", "y")


@pytest.mark.parametrize("data", [b"some words\t1\nothers\t0\n", b"\nsentence\tlabel\n"], ids=["absent", "blank line above"])
def test_absent_header_is_reported_at_the_first_line(write, data):
    path = write(data)
    assert message_of(path, "sentence").startswith(f"{path}:1: no column 'sentence' in the header line; it reads ")


def test_long_first_line_is_shortened_in_the_message(write):
    assert len(message_of(write(b"word " * 1000), "sentence").split("it reads ")[1]) == 200


def test_commas_in_place_of_tabs_are_shown_as_the_header_reads(write):
    assert message_of(write(b"sentence,label\na,1\n"), "sentence").endswith("it reads sentence,label")


@pytest.mark.parametrize(("row", "number"), [(b"a", 1), (b"a\t1\t2", 3), (b"", 1), (b"a\t1\t", 3)])
def test_row_with_another_number_of_cells_is_named(write, row, number):
    path = write(b"sentence\tlabel\nfine\t0\n" + row + b"\nfine\t0\n")
    assert message_of(path, "sentence") == f"{path}:3: {number} cells where 2 are expected; cells are divided by tabs"


def test_row_is_measured_against_the_names_given(write):
    path = write(b"1\t2\n3\n")
    assert message_of(path, "y", header=("x", "y")).startswith(f"{path}:2: 1 cells where 2 are expected")


def test_invalid_utf8_is_named_with_line_and_byte(write):
    path = write(b"sentence\tlabel\nfine\t0\ncaf\xe9\t1\n")
    assert message_of(path, "sentence") == f"{path}:3: not UTF-8: byte 4 of the line is 0xe9"


def test_utf16_is_reported_at_the_first_byte(write):
    path = write("\ufeffsentence\tlabel\na\t1\n".encode("utf-16-le"))
    assert message_of(path, "sentence") == f"{path}:1: not UTF-8: byte 1 of the line is 0xff"


def test_rows_above_the_damage_are_read(write):
    rows = read_rows(write(b"fine\n\xff\n"))
    assert next(rows).cells == ["fine"]


def test_header_only_has_no_rows(write):
    assert cells(write(b"sentence\tlabel\n"), "sentence") == []
