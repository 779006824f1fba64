"""Patterns and folders of files."""

import gzip

import pytest

from bert_tf.batch import file_pairs
from bert_tf.batch.file_pairs import FilePair, OutputForm, expanded
from bert_tf.errors import FlagError


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt.GZ", "a.txt", "a.csv"):
        (tmp_path / name).touch()
    (tmp_path / "c.txt").mkdir()


@pytest.mark.parametrize(
    ("source", "output", "suffix", "expected"),
    [
        ("*.txt*", "out/", "npz", [("a.txt", "out/a.npz"), ("b.txt.GZ", "out/b.npz")]),
        ("*.csv", "x.npz", None, [("a.csv", "x.npz")]),
        *((source, output, None, [(source, output)]) for source, output in (("a.txt", "x"), ("-", "-"), ("none.txt", "x"))),
    ],
)
def test_names(source, output, suffix, expected):
    assert expanded(FilePair(source, output, suffix), suffix) == [FilePair(*names, suffix) for names in expected]


@pytest.mark.parametrize(
    ("source", "output", "suffix", "problem"),
    [
        ("*.txt*", "x.npz", None, "--input=*.txt*: 2 files; name a folder for their vectors: --output=FOLDER/"),
        ("*.md", "out/", "npz", "--input=*.md: no file matches"),
        ("a.txt", "out/", None, "--output=out/: is a folder; add --output_format, or name a file to write"),
        ("a.*", "out/", "npz", "a.csv: its vectors and those of another file would be out/a.npz; rename one of them"),
    ],
)
def test_names_that_do_not_fit_are_one_line(source, output, suffix, problem):
    with pytest.raises(FlagError) as caught:
        expanded(FilePair(source, output, suffix), suffix)
    assert str(caught.value) == problem


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
    assert file_pairs.output_form(output, asked) == expected


@pytest.mark.parametrize(
    ("output", "asked", "problem"),
    [
        *((name, None, r"cannot write that; name it \.tsv, \.csv, \.jsonl or one of") for name in ("x.parquet", "x.XLSX")),
        *(("x.csv.zst", asked, r"cannot compress to \.zst; name it .* or one of these with \.gz$") for asked in (None, "csv")),
        ("x.ZIP", None, r"cannot compress to \.zip; name it"),
    ],
)
def test_a_name_of_another_format_is_refused(output, asked, problem):
    with pytest.raises(FlagError, match=f"^{output}: {problem}"):
        file_pairs.output_form(output, asked)


@pytest.mark.parametrize("compressed", [False, True])
def test_parts_make_the_whole(compressed):
    form = OutputForm("csv", compressed=compressed)
    whole = b"".join(map(form.encode, ("ä\r\n", "", "b\r\n")))
    assert (gzip.decompress(whole) if compressed else whole).decode() == "ä\r\nb\r\n"
    assert form.encode("ä") == form.encode("ä")
