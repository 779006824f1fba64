"""Rows of a split: which are left out or get other labels."""

import csv
import dataclasses
import io
from types import SimpleNamespace

import pytest

from bert_tf.errors import DataError
from bert_tf.extensions.audit import findings
from bert_tf.extensions.choice.family import ChoiceFamily
from bert_tf.extensions.choice.reader import ChoiceExample
from bert_tf.extensions.corrections import rows as corrections
from bert_tf.extensions.similarity.family import SimilarityFamily
from bert_tf.extensions.span.family import SpanFamily
from bert_tf.extensions.span.reader import Answer, SpanExample
from bert_tf.extensions.tags.columns import TagExample
from bert_tf.extensions.tags.family import TagFamily
from bert_tf.head_spec import MULTI_LABEL, REGRESSION
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import SentenceExample
from tests.tasks.refusals import refusal

TASK = SimpleNamespace(family=SentenceFamily(("a", "b")))
ROWS = [SentenceExample(f"train-{n}", f"text {n}", None, "a") for n in range(4)]


@pytest.fixture
def file(tmp_path):
    def write(text, name="corrections.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def corrected(exclude=None, relabel=None, rows=ROWS):
    return [(row.guid, row.label) for row in corrections.apply(rows, TASK, exclude=exclude, relabel=relabel)]


def test_a_file_that_changes_nothing_is_said(file, caplog):
    path = file("id,action\ntrain-1,keep\n")
    assert len(corrected(exclude=path)) == 4
    assert caplog.messages[0] == f"{path}: changes no training row"
    caplog.clear()
    path = file("id,action,suggested\ntrain-1,relabel,b\n")
    corrected(exclude=path, relabel=path)
    assert not any("changes no training row" in message for message in caplog.messages)


def test_rows_are_left_out_or_get_other_labels(file, tmp_path):
    ids = "train-1\ntrain-3\n"
    for text in (ids, f"id\n{ids}", f"sep=;\nid\n{ids}", '"label","id"\na,train-1\nb,train-3\n'):
        assert corrected(exclude=file(text)) == [("train-0", "a"), ("train-2", "a")]
    below = "sep=;\ntrain-1;b\n", "sep=;\nlabel;id\nb;train-1\n", "SEP=,\r\nlabel,id\r\nb,train-1\r\n"
    tables = "train-1,b\n", "id\tlabel\ntrain-1\tb\n", "label,id\nb,train-1\n", "label;id\nb;train-1\n", *below
    for text in tables:
        assert corrected(relabel=file(text)) == [("train-0", "a"), ("train-1", "b"), ("train-2", "a"), ("train-3", "a")]
    with pytest.raises(DataError, match="cannot read the file"):
        corrected(exclude=str(tmp_path / "none.csv"))
    with pytest.raises(DataError, match="^-: standard input can be read only once; name a file"):
        corrected(exclude="-")
    for encoding, problem in (("utf-16", "the file is UTF-16; iconv"), ("utf-16-le", "the file is UTF-16LE; iconv")):
        (tmp_path / "excel.csv").write_bytes("id\ntrain-1\n".encode(encoding))
        with pytest.raises(DataError, match=problem):
            corrected(exclude=str(tmp_path / "excel.csv"))


def test_the_table_of_a_large_audit_is_read(file, monkeypatch):
    monkeypatch.setattr("bert_tf.io.files.read_bytes", None)
    assert corrected(exclude=file("id,text\ntrain-1,long\n"))[1] == ("train-2", "a")


def test_an_audit_says_what_to_do_with_each_row(file):
    rows = [
        findings.row_of(split, row, is_train=split == "train") for row, split in zip(ROWS, ("train", "train", "train", "dev"))
    ]
    issues = [
        findings.Finding(findings.LABEL, 0.1, rows[0], "b"),
        findings.Finding(findings.DUPLICATE, 1.0, rows[1], other=rows[0]),
        findings.Finding(findings.OUTLIER, 0.2, rows[2]),
        findings.Finding(findings.DUPLICATE, 1.0, rows[3]),
    ]
    path = file(findings.table(issues, ","))
    assert corrected(path, path) == [("train-0", "b"), ("train-2", "a"), ("train-3", "a")]
    of_user = [dataclasses.replace(row, guid=f"T{n}") for n, row in enumerate(ROWS)]  # ids of their own, and a corrected text
    row = findings.row_of("train", dataclasses.replace(of_user[0], text_a="txet 0"), is_train=True)
    edited = file(findings.table([findings.Finding(findings.LABEL, 0.1, row, "b")], ","), "of_user.csv")
    assert corrected(relabel=edited, rows=of_user)[0] == ("T0", "b")
    moved = [dataclasses.replace(row, guid=f"train-{n}") for n, row in enumerate(ROWS[1:])]  # the first row was deleted
    with pytest.raises(DataError, match="the text of 'train-1' is another one in the training file, which has changed since"):
        corrected(exclude=path, rows=moved)


@pytest.mark.parametrize(
    ("row", "change"),
    [
        (SentenceExample("train-1", "a premise", "one", "a"), {"text_b": "two"}),
        (SentenceExample("train_de-1", "one", None, "a"), {"text_a": "two"}),
        (SpanExample("train-1", "a question", "one", ()), {"context": "two"}),
        (ChoiceExample("train-1-0", "a passage", "who", ("x", "y"), 0), {"question": "what"}),
        (ChoiceExample("train-1", "a passage", "", ("x", "y"), 0), {"options": ("v", "w")}),
    ],
)
def test_a_row_that_took_the_number_of_another_is_refused(file, row, change):
    issue = findings.Finding(findings.DUPLICATE, 1.0, findings.row_of("train", row, is_train=True))
    path, others = file(findings.table([issue], ",")), ROWS[2:]
    assert corrected(exclude=path, rows=[row, *others]) == [(other.guid, "a") for other in others]
    neighbour = dataclasses.replace(row, **change)
    assert f"the text of {row.guid!r} is another one" in refusal(DataError, corrected, path, None, [neighbour, *others])


@pytest.mark.parametrize(
    ("exclude", "relabel", "problem"),
    [
        ("train-9\n", None, "1 of 1 ids are not those of training rows; the first is 'train-9', a training row is '"),
        ("".join(f"train-{n}\n" for n in range(4)), None, "excludes every training row"),
        (None, "train-1,c\n", "train-1: unknown label 'c' (known: a, b)"),
        (
            "x;id,label\n1;train-1,a\n",
            None,
            "no column 'id'; write id,label in each line, or name the columns: id,label; the header",
        ),
        (None, "id,label\ntrain-1,\n", "the value in column 'label' is empty"),
        (None, "train-1\n", "no label; write id,label in each line, or name the columns: id,label"),
        (None, "train-1,a\ntrain-1,b\n", "label of 'train-1' differs from that above"),
        ("id,action\ntrain-0,Exclude\ntrain-1,exlude\n", None, "the action 'exlude' is none of keep, exclude, relabel"),
        ("", None, "is empty"),
    ],
)
def test_mistakes_are_one_line(file, exclude, relabel, problem):
    paths = [None if text is None else file(text, f"{n}.csv") for n, text in enumerate((exclude, relabel))]
    assert problem in refusal(DataError, corrected, *paths)


@pytest.mark.parametrize("texts", [("train-1\n", None), (None, "train-1,b\n")])
def test_an_id_of_several_rows_is_refused(file, texts):
    paths = [None if text is None else file(text) for text in texts]
    rows = [*ROWS, SentenceExample("train-1", "another text", None, "b")]
    problem = "'train-1' is the id of 2 training rows; corrections need ids that differ (without --id_column rows are numbered)"
    assert problem in refusal(DataError, corrected, *paths, rows)


@pytest.mark.parametrize(
    ("family", "example", "text", "field", "value"),
    [
        (SentenceFamily(kind=REGRESSION), SentenceExample("1", "t", None, 1.0), "2.5", "label", 2.5),
        (SimilarityFamily(5.0), SentenceExample("1", "t", "u", 1.0), "5", "label", 5.0),
        (SentenceFamily(("a", "b"), MULTI_LABEL), SentenceExample("1", "t", None, ("a",)), '"a, b"', "label", ("a", "b")),
        (SentenceFamily(("a", "b"), MULTI_LABEL), SentenceExample("1", "t", None, ("a",)), "", "label", ()),
        (TagFamily(("O", "X")), TagExample("1", ("a", "b"), ("O", "O")), "O X", "label", ("O", "X")),
        (TagFamily(("O", "X", "a X")), TagExample("1", ("a", "b"), ("O", "O")), "O X", "label", ("O", "X")),
        (ChoiceFamily(), ChoiceExample("1", "c", "q", ("x", "y"), 0), "1", "label", 1),
        (SpanFamily(), SpanExample("1", "q", "in 1871, 1871 and 18", (Answer("and 18", 14),)), "18", "answers", (("18", 18),)),
        (SpanFamily(), SpanExample("1", "q", "1871, 1871", (Answer("71", 8),)), "1871", "answers", (("1871", 6),)),
        (SpanFamily(), SpanExample("1", "q", "a red fox", ()), "fox", "answers", (("fox", 6),)),
        (SpanFamily(version_2_with_negative=True), SpanExample("1", "q", "a fox", (Answer("fox", 2),)), "", "answers", ()),
    ],
)
def test_labels_of_every_family(file, family, example, text, field, value):
    (corrected,) = corrections.apply([example], SimpleNamespace(family=family), exclude=None, relabel=file(f"1,{text}\n"))
    assert getattr(corrected, field) == value


@pytest.mark.parametrize(
    ("family", "example", "text", "problem"),
    [
        (SpanFamily(), SpanExample("1", "q", "1871, 1871", ()), "1871", "the answer '1871' is in the context several times"),
        (SentenceFamily(("a", "b"), MULTI_LABEL), SentenceExample("1", "t", None, ()), '"a,a"', "the label 'a' is repeated"),
        (SpanFamily(), SpanExample("1", "q", "a fox", (Answer("fox", 2),)), "", "the value in column '2' is empty"),
        (
            TagFamily(("O", "a X")),
            TagExample("1", ("a", "b"), ("O", "O")),
            "O a X",
            "1: the tag 'a X' holds a blank, and blanks",
        ),
    ],
)
def test_labels_that_are_ambiguous_are_refused(file, family, example, text, problem):
    task, path = SimpleNamespace(family=family), file(f"1,{text}\n")
    assert problem in refusal(DataError, lambda: corrections.apply([example], task, exclude=None, relabel=path))


@pytest.mark.parametrize("task", [SimpleNamespace(family=SimilarityFamily(5.0)), get_task("STS-B")])
@pytest.mark.parametrize("label", ["7", "-0.5"])
def test_a_score_outside_the_scale_is_refused(file, task, label):
    rows, path = [SentenceExample("1", "t", "u", 4.0)], file(f"1,{label}\n")
    problem = refusal(DataError, corrections.apply, rows, task, exclude=None, relabel=path)
    assert problem == f"{path}: 1: the label {label} is outside 0 to 5"


def test_cells_that_a_spreadsheet_would_compute_are_texts_and_are_read_back(file):
    names = ("=1+1", "+cmd", "-a", "@x", "'=1+1", "\tx", "-0.5", "'a", "plain")
    rows = [SentenceExample(name, name, None, name) for name in names]
    issues = [findings.Finding(findings.LABEL, 0.1, findings.row_of("train", row, is_train=True), row.guid) for row in rows]
    text = findings.table(issues, ",")
    cells = [line["id"] for line in csv.DictReader(io.StringIO(text, newline=""))]
    assert cells == ["'=1+1", "'+cmd", "'-a", "'@x", "''=1+1", "'\tx", "-0.5", "'a", "plain"]
    assert list(corrections.read_labels(file(text), corrections.RELABEL).items()) == [
        (name.strip(), name.strip()) for name in names
    ]
    assert corrections.read_labels(file("id,label\n'=a,b\n"), corrections.RELABEL) == {"'=a": "b"}  # not written by an audit
