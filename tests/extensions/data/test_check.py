"""What a check says of the files of a task."""

import subprocess
import sys
from pathlib import Path

import pytest

import bert_tf
from bert_tf.checkpoints import default as default_checkpoint
from bert_tf.checkpoints import huggingface
from bert_tf.extensions.data import check
from tests.extensions.report import example
from tests.profiling.excerpt import TRACE
from tests.tokenizer_files import byte_level

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _no_vocabulary(monkeypatch):
    monkeypatch.delenv("BERT_BASE_DIR", raising=False)
    monkeypatch.setenv("BERT_TF_HOME", "/no/such/home")


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n", encoding="utf-8")
    return path


@pytest.fixture
def run(call, tmp_path, monkeypatch):
    """Runs the command in a folder of files, whose lines are given by name."""
    monkeypatch.chdir(tmp_path)

    def run(line, files):
        for name, rows in files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        return call("data", "check", *line.split())

    return run


def test_a_folder_is_described(run, vocab_file):
    train = ["sentence\tlabel", "ab ab\t1", "a\t1", "a " * 70 + "\t0"]
    files = {"SST-2/train.tsv": train, "SST-2/dev.tsv": ["sentence\tlabel", "a\t0", "ab\t1"]}
    status, out, err = run(f"SST-2 --vocab_file={vocab_file}", files)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"SST-2; lengths in word pieces of {vocab_file}, [CLS] and [SEP] included",
        "",
        "train: SST-2/train.tsv",
        "  rows           3",
        "  labels         0: 1 (33.3%), 1: 2 (66.7%)",
        "  length         mean 27.0, median 6, longest 72",
        "    1-16                2  66.7%  ###########################",
        "    65-128              1  33.3%  #############",
        "  truncated at   64: 33.3%, 128: 0.0%, 256: 0.0%, 512: 0.0%",
        "",
        "dev: SST-2/dev.tsv",
        "  rows           2",
        "  labels         0: 1 (50.0%), 1: 1 (50.0%)",
        "  length         mean 3.5, median 4, longest 4",
        "    1-16                2 100.0%  ########################################",
        "  truncated at   64: 0.0%, 128: 0.0%, 256: 0.0%, 512: 0.0%",
        "  in train too   1 rows (50.0%): dev-1",
        "  warning        in train too, so their scores say little: 1 rows (50.0%): dev-1",
        "",
        "test: SST-2/test.tsv is missing",
        "",
        "every row can be used; warnings: 1; in train too: 1",
    ]
    report = bert_tf.check_data("SST-2", vocab_file=vocab_file)
    assert (str(report) + "\n", report.problems) == (out, ())
    assert [(one.split, one.counts and one.counts.rows) for one in report.splits] == [("train", 3), ("dev", 2), ("test", None)]
    assert report._repr_html_() == f"<pre>{out}</pre>".replace("\n</pre>", "</pre>").replace("&", "&amp;")


OWN = "--task_name=custom --train_file=a.csv"
QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
ONE_WARNING = "every row can be used; warnings: 1\n"
CONTRADICTION = "label differs from an earlier row of the same text"
# A command line, its files, and parts of what is printed; the last of them ends it.
DESCRIBED = {
    "rows that are left out": (
        "QQP",
        {"QQP/train.tsv": [QQP, *["1\t2\t3\tOne?\tTwo?\t1"] * 1500, "breaks\t0"]},
        (
            "warning        all rows have the same label: nothing",
            "  left out       1 rows\n    QQP/train.tsv:1502: 2 cells, expected 6",
            "\n\nrows left out: 1; warnings: 1; duplicates: 1499\n",
        ),
    ),
    "answers elsewhere": (
        f"{OWN} --problem=span",
        {"a.csv": ["question,context,answer,start", "who?,a red fox,fox,6", "why?,a red fox,fox,1"]},
        (
            "  warning        answers not found at their start (without one: not exactly once in the context),"
            " so not trained on: 1 of 2: train-3",
            ONE_WARNING,
        ),
    ),
    "quotes of Excel, once, although labels and texts are read in turn": (
        OWN.replace("a.csv", "a.tsv"),
        {"a.tsv": ["text\tlabel", *(f"{label} {n}\t{label}" for label in ('"x, y"', "z") for n in range(5))]},
        ("  warning        a.tsv:2: a cell is in quotes, which belong to its text; if Excel", ONE_WARNING),
    ),
    "repeated and contradicting texts": (
        OWN,
        {"a.csv": ["text,label", *(f"the same,{label}" for label in "ab" * 10)]},
        (
            "  duplicates     19 rows (95.0%): train-3, train-4, train-5, ...\n",
            f"  warning        {CONTRADICTION}: 10 rows (50.0%): train-3, train-5, train-7, ...\n",
            "\n\nevery row can be used; warnings: 1; duplicates: 19\n",
        ),
    ),
    "repeated ids": (
        "--task_name=custom --test_file=a.csv --id_column=id",
        {"a.csv": ["text,id", "one,1", "two,2", "three,1"]},
        ("  warning        id repeats an earlier row's: 1 rows (33.3%): 1\n", ONE_WARNING),
    ),
    "numbers": (
        "stsb",
        {"stsb/train.tsv": ["sentence1\tsentence2\tscore", "a\tb\t1", "a\tb\t4"]},
        ("  labels         1 to 4, mean 2.500, deviation 1.500\n", "every row can be used; warnings: 1; duplicates: 1\n"),
    ),
    "several labels of own columns": (
        f"{OWN} --test_file=b.csv --text_a=title,body --label_column=tags --problem=multi_label --label_separator=|",
        {"a.csv": ["title,body,tags", "one,,x|y", ",two,", "three,and four,y"], "b.csv": ["title,body", "four,"]},
        (
            "  labels         x: 1 (33.3%), y: 2 (66.7%)\n  length         mean 3.7, median 3, longest 5\n",
            "test: b.csv\n  rows           1\n",
            ONE_WARNING,
        ),
    ),
    "tags, by their share of words": (
        f"{OWN} --problem=tags".replace(".csv", ".txt"),
        {"a.txt": ["a U-X", "b O", "c O", "d O", "", "e O"]},
        ("  rows           2\n", "labels         O: 4 (80.0%), B-X: 1 (20.0%), I-X: 0 (0.0%)", "no problem found\n"),
    ),
    "questions, some without an answer": (
        f"{OWN} --problem=span --version_2_with_negative",
        {"a.csv": ["context,question,answer", "a red fox,who?,fox", "a red fox,why?,"]},
        (
            "  rows           2\n  labels         1 different\n  length         mean 7.0, median 7, longest 7\n",
            "  need several windows at 64: 0.0%, 128: 0.0%, 256: 0.0%, 512: 0.0%\n",
            "  no label       1 rows (50.0%): train-3\n",
            "no problem found\n",
        ),
    ),
    "missing splits": (
        "MNLI",
        {
            "MNLI/dev_matched.tsv": ["sentence1\tsentence2\tgold_label", "a\tb\tneutral"],
            "MNLI/test_mismatched.tsv": ["sentence1\tsentence2", "a\tb"],
        },
        (
            *(f"{split}: MNLI/{split}.tsv is missing" for split in ("train", "dev_mismatched", "test_matched")),
            "no problem found\n",
        ),
    ),
}


@pytest.mark.parametrize("name", DESCRIBED)
def test_whatever_is_counted_is_described_and_summed_up(run, name, caplog):
    line, files, parts = DESCRIBED[name]
    status, out, err = run(line, files)
    assert (status, err, caplog.messages) == (0, "", [])
    assert [part for part in parts if part not in out] == []
    assert out.endswith(parts[-1])


@pytest.mark.parametrize(("label", "warns"), [("{:.1f}", True), ("{:.0f}", False), ("name{}", False)])
def test_numbers_that_are_taken_for_classes_are_called_so(run, label, warns):
    labels = [label.format(number / 10) for number in range(40)]
    out = run(OWN, {"a.csv": ["text,label", *(f"text {n},{label}" for n, label in enumerate(labels))]})[1]
    warning = f"{len(set(labels))} classes of 40 rows, all numbers: --problem=regression learns numbers"
    assert (warning in out) == warns


def test_every_row_that_cannot_be_used_is_named(run):
    train = ["sentence1\tsentence2\tlabel", "a\tb\tmaybe", "a\t\tentailment", "a\tb\tentailment"]
    status, out, err = run("RTE", {"RTE/train.tsv": train, "RTE/dev.tsv": ["sentence1\tlabel", "a\tentailment"]})
    assert status == 2
    assert "RTE; lengths in words (--vocab_file counts word pieces, which are more)" in out
    assert err.splitlines() == [
        "error: RTE/train.tsv:2: unknown label 'maybe'; known are entailment, not_entailment",
        "error: RTE/train.tsv:3: the text in column 'sentence2' is empty",
        "error: RTE/dev.tsv:1: no column 'sentence2'; the header line reads sentence1 | label",
    ]
    assert "no problem found" not in out
    assert [f"error: {problem}" for problem in bert_tf.check_data("RTE").problems] == err.splitlines()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "data check: name a folder, or --task_name=custom and its files"),
        ("--task_name=RTE", "data check: name the folder of RTE"),
        ("--task_name=custom", "data check: --task_name=custom takes --train_file, --dev_file, --test_file and no folder"),
        ("x --task_name=pretraining", "--task_name=Pretraining has a command of its own: python -m bert_tf pretrain"),
        ("x --task_name=RTE --text_a=1", "--text_a belongs to --task_name=custom; RTE does not take it"),
        ("x y", "data check: 2 names given, [DATA_DIR] expected; flags are written --name=value"),
        (". --task_name=RTE", ".: has no files of RTE"),
        ("nodir", "nodir: no such folder"),
        ("MRCP", "MRCP: the folder's name is not a task; add --task_name: unknown task 'MRCP'; did you mean MRPC?"),
        ("--task_name=custom --dev_file=none.csv", "none.csv: no such file"),
        (f"{OWN} --problem=span", "a.csv:3: the question has no answer"),
    ],
)
def test_refuses(run, line, problem):
    status, _, err = run(line, {"MRCP/x": [], "a.csv": ["context,question,answer", "a red fox,who?,fox", "a red fox,why?,"]})
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"error: {problem}")


def test_the_vocabulary_is_that_of_the_flag_the_variable_or_the_default_checkpoint(vocab_file, tmp_path):
    default = tmp_path / "checkpoints" / default_checkpoint.NAME / huggingface.VOCABULARY_NAME
    default.parent.mkdir(parents=True)
    default.write_bytes(vocab_file.read_bytes())
    for flag, environment, path in (
        (str(vocab_file), {}, vocab_file),
        (None, {"BERT_BASE_DIR": str(tmp_path)}, vocab_file),
        (None, {"BERT_TF_HOME": str(tmp_path)}, default),
        (None, {"BERT_BASE_DIR": str(tmp_path / "checkpoints")}, None),
    ):
        unit, cut, unknown, _ = check.find_ruler(flag, environment)
        words = "words (--vocab_file counts word pieces, which are more)", 3, 0
        tokens = cut("AB a c")
        assert (unit, len(tokens), tokens.count(unknown)) == ((f"word pieces of {path}", 4, 1) if path else words)


def test_the_tokenizer_of_a_folder_is_that_of_its_type(tmp_path):
    """As of MPNet, whose vocab.txt is not BERT's."""
    pytest.importorskip("tokenizers")
    files = {"vocab.txt": "<s>\n<pad>\n", "tokenizer.json": byte_level(), "config.json": '{"model_type": "mpnet"}'}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    unit, _, _, separators = check.find_ruler(None, {"BERT_BASE_DIR": str(tmp_path)})
    assert (unit, separators) == (f"word pieces of {tmp_path}/tokenizer.json", 2)


def test_texts_that_the_vocabulary_lacks_are_a_warning(run, vocab_file):
    rows = ["text,label", *["ab a a a,x", "ab \u597d a,y"] * 2]
    out = run(f"{OWN} --vocab_file={vocab_file}", {"a.csv": rows})[1]
    assert "  warning        11 % of the pieces are [UNK], which the model cannot tell apart: start from" in out


def test_tensorflow_and_matplotlib_are_left_out_of_what_reads_files(tmp_path):
    files = {"trace.txt": TRACE, "live.tsv": example.LIVE, "CoLA/dev.tsv": "own\t0\t*\tTwo the.\n"}
    (tmp_path / "CoLA").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    lines = ["data check CoLA", "memory report trace.txt", "memory peak live.tsv", "profile CoLA"]
    code = f"""if True:
        import sys
        from bert_tf.__main__ import main
        for line in {lines}:
            main(["bert_tf", *line.split()])
        sys.exit(bool({{"tensorflow", "matplotlib"}} & set(sys.modules)))
    """
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, "no problem found" in done.stdout) == (0, True), done.stderr


def test_texts_that_were_converted_from_another_encoding_than_their_own_are_a_warning(run):
    rows = ["text,label", "It didn\x92t stop.,a", "It didn\u2019t stop.,b", "caf\u00c3\u00a9,a", "\u00c3 bient\u00f4t,b"]
    status, out, _ = run("--task_name=custom --train_file=a.csv", {"a.csv": rows})
    assert (status, "texts have signs of a wrong encoding" in out) == (0, True)
    assert "convert the file from its own: 2 rows (50.0%): train-2, train-4" in out
