"""What an output is written as."""

from __future__ import annotations

import gzip

import pytest

from bert_tf.batch import output_form
from bert_tf.batch.output_form import OutputForm
from bert_tf.errors import FlagError


@pytest.mark.parametrize(
    ("output", "asked", "expected"),
    [
        ("out/x.csv", None, OutputForm("csv")),
        ("x.jsonl.gz", None, OutputForm("jsonl", compressed=True)),
        ("x.TSV.GZ", None, OutputForm("tsv", compressed=True)),
        ("x.json", None, OutputForm("jsonl")),
        ("x.txt", None, OutputForm("tsv")),
        *((name, None, OutputForm("tsv")) for name in ("-", "x", "/dev/fd/63", "csv", "run.1", "out.csv/x")),
        ("x.gz", None, OutputForm("tsv", compressed=True)),
        ("-", "csv", OutputForm("csv")),
        ("x.tsv.gz", "jsonl", OutputForm("jsonl", compressed=True)),
        ("x.parquet", "csv", OutputForm("csv")),
    ],
)
def test_the_name_says_it_unless_it_is_asked_for(output, asked, expected):
    assert output_form.of(output, asked) == expected


@pytest.mark.parametrize("output", ["x.parquet", "x.XLSX"])
def test_a_name_that_promises_something_else_is_refused(output):
    with pytest.raises(
        FlagError, match=rf"{output}: cannot write that; name it \.tsv, \.csv, \.jsonl or one of these with \.gz"
    ):
        output_form.of(output, None)


@pytest.mark.parametrize("asked", [None, "csv"])
@pytest.mark.parametrize(("output", "suffix"), [("x.csv.zst", ".zst"), ("x.ZIP", ".zip")])
def test_a_compression_that_is_not_written_is_refused_whatever_is_asked_for(output, asked, suffix):
    with pytest.raises(FlagError, match=rf"{output}: cannot compress to {suffix}; name it .* or one of these with \.gz$"):
        output_form.of(output, asked)


@pytest.mark.parametrize("compressed", [False, True])
def test_parts_make_the_whole(compressed):
    form = OutputForm("csv", compressed=compressed)
    whole = b"".join(map(form.encode, ("ä\r\n", "", "b\r\n")))
    assert (gzip.decompress(whole) if compressed else whole).decode() == "ä\r\nb\r\n"
    assert form.encode("ä") == form.encode("ä")
