from __future__ import annotations

import pytest

from bert_tf.errors import DataError
from bert_tf.tasks import text_lines

BOM = b"\xef\xbb\xbf"


@pytest.fixture
def write(tmp_path):
    def write(data):
        path = tmp_path / "a.txt"
        path.write_bytes(data)
        return path

    return write


def test_lines_are_all_lines_blank_ones_too(write):
    path = write(BOM + b"\r\na\tb\r\n\n\xff\n \n\n")
    found = list(text_lines.lines(path))
    assert [line.text for line in found if isinstance(line, text_lines.Line)] == ["", "a\tb", "", " ", ""]
    assert isinstance(found[3], DataError)


def test_a_file_of_blank_lines_is_empty(write):
    with pytest.raises(DataError, match="the file is empty"):
        list(text_lines.lines(write(b"\n\n")))
