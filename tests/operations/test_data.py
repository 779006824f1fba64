"""The data command: what it fetches, from a server that breaks off too, and what it says of a folder."""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

from bert_tf.commands import data
from bert_tf.jobs import check_data, download, fetch
from bert_tf.tasks import mrpc
from bert_tf.tasks.glue import TASKS
from tests.tasks.test_mrpc import HEADER, TEST, TRAIN

ROOT = Path(__file__).resolve().parents[2]
COLA = {"train.tsv": b"own\t1\t\tOne.\n", "dev.tsv": b"own\t0\t*\tTwo the.\n", "test.tsv": b"index\tsentence\n0\tThree.\n"}


class Site:
    """What a server has and how it behaves.

    Attributes:
      files: contents by path.
      breaks: of the next replies, how many bytes are sent before the connection ends; then all are.
      asked: path of each request.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.breaks: list[int] = []
        self.asked: list[str] = []

    def reply(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        self.asked.append(handler.path[1:])
        body = self.files.get(handler.path[1:])
        if body is None:
            handler.send_error(404)
            return
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: self.breaks.pop(0) if self.breaks else None])


@pytest.fixture
def site(monkeypatch):
    """Serves a `Site` on the loopback, in the place of the published one."""
    served = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802
            served.reply(self)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "SITE", f"http://127.0.0.1:{server.server_port}/")
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def run(tmp_path, capsys):
    """Returns a function that runs the command and returns exit status, output and errors."""

    def call(*arguments: object) -> tuple[int, str, str]:
        words = [*map(str, arguments)]
        if words[0] == "fetch":
            words.append(f"--data_dir={tmp_path / 'data'}")
        status = data.main(["data", *words])
        return (status, *capsys.readouterr())

    return call


def archive(files: dict[str, bytes], top: str = "CoLA/") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as contents:
        for name, text in files.items():
            contents.writestr(top + name, text)
    return packed.getvalue()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Fetching


def test_an_archive_becomes_a_folder_and_its_sum_is_told_and_kept(site, run, tmp_path):
    body = site.files["glue/data/CoLA.zip"] = archive({**COLA, "original/tokenized.tsv": b"no", "README": b"no"})
    status, out, err = run("fetch", "cola")
    assert (status, err) == (0, "")
    url = f"{fetch.SITE}glue/data/CoLA.zip"
    assert out.splitlines() == [
        f"{url}: {len(body)} bytes, sha256 {digest(body)}; not known before, noted in fetched.sha256",
        f"{tmp_path}/data/CoLA: dev.tsv, test.tsv, train.tsv",
    ]
    assert contents(tmp_path / "data/CoLA") == COLA
    assert (tmp_path / "data/fetched.sha256").read_text() == f"{digest(body)}  {url}\n"
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["CoLA", "fetched.sha256"]


def test_what_is_there_is_not_fetched_again(site, run, tmp_path):
    site.files["glue/data/CoLA.zip"] = archive(COLA)
    run("fetch", "CoLA")
    assert run("fetch", "CoLA") == (0, f"{tmp_path}/data/CoLA: is there; delete the folder to fetch it again\n", "")
    assert len(site.asked) == 1


def test_a_connection_that_breaks_off_is_one_line_and_leaves_nothing(site, run, tmp_path):
    body = site.files["glue/data/CoLA.zip"] = archive(COLA)
    site.breaks = [100]
    why = (
        f"the connection broke off {len(body) - 100} bytes before the end; try again, or name a folder that has it with --from"
    )
    assert run("fetch", "CoLA") == (2, "", f"error: {fetch.SITE}glue/data/CoLA.zip: cannot be fetched: {why}\n")
    assert list((tmp_path / "data").iterdir()) == []
    assert run("fetch", "CoLA")[0] == 0
    assert contents(tmp_path / "data/CoLA") == COLA


def test_what_a_killed_fetch_left_is_deleted(site, run, tmp_path):
    site.files["glue/data/CoLA.zip"] = archive(COLA)
    rest = tmp_path / "data/.downloads/.CoLA.zip.4711.tmp"
    rest.parent.mkdir(parents=True)
    rest.write_bytes(b"PK")
    assert run("fetch", "CoLA")[0] == 0
    assert not rest.parent.exists()


def test_no_such_file_is_one_line(site, run):
    url = f"{fetch.SITE}glue/data/RTE.zip"
    assert run("fetch", "RTE") == (2, "", f"error: {url}: cannot be fetched: 404 Not Found\n")
    assert len(site.asked) == 1


@pytest.mark.usefixtures("site")  # it has no files
def test_a_fetch_that_got_nothing_leaves_nothing(run, tmp_path):
    run("fetch", "RTE")
    assert list((tmp_path / "data").iterdir()) == []


def test_no_server_is_one_line(run, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "SITE", "http://127.0.0.1:9/")
    status, _, err = run("fetch", "RTE")
    assert status == 2
    assert err.startswith("error: http://127.0.0.1:9/glue/data/RTE.zip: cannot be fetched: ")
    assert err.count("\n") == 1


def test_a_file_that_changed_since_it_was_fetched_is_refused(site, run, tmp_path):
    before = site.files["glue/data/AX.tsv"] = b"index\tsentence1\tsentence2\n0\ta\tb\n"
    assert run("fetch", "AX")[0] == 0
    assert contents(tmp_path / "data/AX") == {"diagnostic.tsv": before}
    (tmp_path / "data/AX/diagnostic.tsv").unlink()
    after = site.files["glue/data/AX.tsv"] = before + b"1\tc\td\n"
    assert run("fetch", "AX") == (
        2,
        "",
        f"error: {fetch.SITE}glue/data/AX.tsv: has sha256 {digest(after)}, not {digest(before)} as fetched before,"
        " see fetched.sha256; it was not used\n",
    )
    assert run("fetch", "AX", f"--sha256={digest(after).upper()}")[0] == 0  # it was meant to change
    assert contents(tmp_path / "data/AX") == {"diagnostic.tsv": after}


def test_a_file_without_end_is_not_fetched_to_the_end(site, run, tmp_path, monkeypatch):
    site.files["glue/data/CoLA.zip"] = archive(COLA) + bytes(1 << 20)
    monkeypatch.setattr(download, "MOST_BYTES", 1 << 19)
    status, _, err = run("fetch", "CoLA")
    assert (status, err) == (2, f"error: {fetch.SITE}glue/data/CoLA.zip: has more than 0 MB; it was not used\n")
    assert list((tmp_path / "data").iterdir()) == []


def test_an_archive_that_unpacks_to_too_much_is_refused(site, run, tmp_path, monkeypatch):
    site.files["glue/data/CoLA.zip"] = archive({**COLA, "train.tsv": bytes(1 << 20)})
    monkeypatch.setattr(fetch, "_MOST_UNPACKED", 1 << 19)
    status, _, err = run("fetch", "CoLA")
    assert (status, "its files have 1 MB, more than 0; it was not used" in err, err.count("\n")) == (2, True, 1)
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize(("url", "to"), [("https://a/b", "http://a/b"), ("https://a/b", "ftp://a/b")])
def test_no_redirect_leaves_https(url, to):
    request = urllib.request.Request(url)  # noqa: S310  (nothing is opened)
    follow = functools.partial(download._Redirects().redirect_request, request, None, 302, "Found", {})
    with pytest.raises(urllib.error.URLError, match=f"redirected from https to {to}, which is not followed"):
        follow(to)
    assert follow("https://c/d").full_url == "https://c/d"
    assert any(isinstance(one, download._Redirects) for one in download._opener.handlers)


def test_a_sum_from_elsewhere_is_checked(site, run, tmp_path):
    body = site.files["glue/data/CoLA.zip"] = archive(COLA)
    status, _, err = run("fetch", "CoLA", f"--sha256={digest(b'else')}")
    assert (status, f"not {digest(b'else')} as --sha256 says; it was not used" in err) == (2, True)
    assert not (tmp_path / "data/CoLA").exists()
    status, out, _ = run("fetch", "CoLA", f"--sha256={digest(body)}")
    assert (status, ", as expected\n" in out) == (0, True)


def test_a_sum_for_files_that_are_there_is_that_which_they_were_fetched_with(site, run, tmp_path):
    body = site.files["glue/data/CoLA.zip"] = archive(COLA)
    run("fetch", "CoLA")
    folder = tmp_path / "data/CoLA"
    assert run("fetch", "CoLA", f"--sha256={digest(body)}") == (
        *(0, f"{folder}: is there, made of what was fetched with these sums; delete the folder to fetch it again\n", ""),
    )
    assert run("fetch", "CoLA", f"--sha256={digest(b'else')}") == (
        *(2, "", f"error: {folder}: is there, not known to be of files with these sums; delete the folder to fetch it again\n"),
    )


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html>no archive</html>", "the archive cannot be read: File is not a zip file"),
        (archive({"train.tsv": b"x"}), "the archive holds no dev.tsv"),
        (archive(COLA).replace(b"Two the", b"Two thy"), "the archive cannot be read: Bad CRC-32 for file 'CoLA/dev.tsv'"),
    ],
    ids=["no archive", "incomplete", "damaged"],
)
def test_what_is_no_archive_of_the_task_is_refused_and_not_kept(site, run, tmp_path, body, problem):
    site.files["glue/data/CoLA.zip"] = body
    status, _, err = run("fetch", "CoLA")
    assert (status, err) == (2, f"error: {tmp_path}/data/.downloads/CoLA.zip: {problem}\n")
    assert [path for path in (tmp_path / "data").rglob("*") if path.is_file()] == []
    site.files["glue/data/CoLA.zip"] = archive(COLA)
    assert run("fetch", "CoLA")[0] == 0


@pytest.mark.usefixtures("_words")
def test_xnli_is_two_archives_in_its_own_folders(site, run, tmp_path):
    header = b"language\tgold_label\tsentence1\tsentence2\nsw\tneutral\ta\tb\n"
    site.files["XNLI/XNLI-1.0.zip"] = archive({"xnli.dev.tsv": header, "xnli.test.tsv": header}, "XNLI-1.0/")
    translated = {f"multinli.train.{language}.tsv": b"premise\thypo\tlabel\na\tb\tneutral\n" for language in ("sw", "ur")}
    site.files["XNLI/XNLI-MT-1.0.zip"] = archive(translated, "XNLI-MT-1.0/multinli/")
    assert run("fetch", "XNLI-sw")[0] == 0
    status, out, _ = run("check", tmp_path / "data/XNLI")
    assert (status, out.count("  rows           ")) == (0, 3)
    assert contents(tmp_path / "data/XNLI/XNLI-MT-1.0/multinli") == translated


def lines(*rows: str, start: str = "\ufeff") -> bytes:
    return (start + "".join(f"{row}\n" for row in rows)).encode()


CORPUS = {mrpc.TRAIN_NAME: lines(*TRAIN), mrpc.TEST_NAME: lines(*TEST), mrpc.DEV_IDS_NAME: lines("12\t13", start="")}


def test_mrpc_is_made_of_the_corpus(site, run, tmp_path):
    for part in fetch.DATASETS["MRPC"][0].parts:
        site.files[part.address] = CORPUS[part.name]
    status, _, err = run("fetch", "MRPC")
    assert (status, "as published; it was not used" in err) == (2, True)  # these texts are made up
    assert run("fetch", "MRPC", f"--sha256={','.join(map(digest, CORPUS.values()))}")[0] == 0
    made = {"train.tsv": lines(*TRAIN[:2], TRAIN[3]), "dev.tsv": lines(HEADER, TRAIN[2])}
    found = contents(tmp_path / "data/MRPC")
    assert {name: found[name] for name in made} == made
    assert sorted(found) == ["dev.tsv", "test.tsv", "train.tsv"]


@pytest.mark.parametrize("ids_name", ["dev_ids.tsv", "mrpc_dev_ids.tsv"])
def test_mrpc_is_made_of_files_that_the_user_has(run, tmp_path, ids_name):
    source = tmp_path / "data/MRPC"  # where its files are to lie
    source.mkdir(parents=True)
    for name, text in CORPUS.items():
        (source / (ids_name if name == mrpc.DEV_IDS_NAME else name)).write_bytes(text)
    status, _, err = run("fetch", "MRPC", f"--from={source}")
    assert status == 0
    assert err.count("the result may differ too") == 3
    assert len(TASKS["MRPC"].examples(source, "train")) == 2
    assert (source / mrpc.TRAIN_NAME).read_bytes() == CORPUS[mrpc.TRAIN_NAME]


def test_a_file_that_the_user_does_not_have_is_named_with_its_address(run, tmp_path):
    status, _, err = run("fetch", "MRPC", f"--from={tmp_path}")
    url = "https://dl.fbaipublicfiles.com/senteval/senteval_data/msr_paraphrase_train.txt"
    assert (status, err) == (2, f"error: {tmp_path}: holds no msr_paraphrase_train.txt; it is published at {url}\n")


def test_every_task_that_is_published_can_be_fetched():
    assert set(fetch.DATASETS) == {*TASKS, "XNLI"}
    for name, task in TASKS.items():
        wanted = {task.file("", split).name for splits in task.split_names.values() for split in splits}
        assert [(dataset.folder, {*dataset.files}) for dataset in fetch.DATASETS[name]] == [(name, wanted)]


# Checking


@pytest.fixture
def _words(monkeypatch):
    """No vocabulary is to be found."""
    monkeypatch.delenv("BERT_BASE_DIR", raising=False)
    monkeypatch.setattr(check_data, "default_vocabulary", lambda _: Path("/no/such/vocab.txt"))


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n", encoding="utf-8")
    return path


def table(path: Path, *rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def test_a_folder_is_described(run, tmp_path, vocab_file):
    folder = tmp_path / "SST-2"
    table(folder / "train.tsv", "sentence\tlabel", "ab ab\t1", "a\t1", "a " * 70 + "\t0")
    table(folder / "dev.tsv", "sentence\tlabel", "a\t0", "ab\t1")
    status, out, err = run("check", folder, f"--vocab_file={vocab_file}")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"SST-2; lengths in word pieces of {vocab_file}, [CLS] and [SEP] included",
        "",
        f"train: {folder}/train.tsv",
        "  rows           3",
        "  labels         0: 1 (33.3%), 1: 2 (66.7%)",
        "  length         mean 27.0, median 6, longest 72",
        "    1-16                2  66.7%  ###########################",
        "    65-128              1  33.3%  #############",
        "  truncated at   64: 33.3%, 128: 0.0%, 256: 0.0%, 512: 0.0%",
        "",
        f"dev: {folder}/dev.tsv",
        "  rows           2",
        "  labels         0: 1 (50.0%), 1: 1 (50.0%)",
        "  length         mean 3.5, median 4, longest 4",
        "    1-16                2 100.0%  ########################################",
        "  truncated at   64: 0.0%, 128: 0.0%, 256: 0.0%, 512: 0.0%",
        "  in train too   1 rows (50.0%): dev-1",
        "",
        f"test: {folder}/test.tsv is not there",
        "",
        "every row can be used; in train too: 1",
    ]


@pytest.mark.usefixtures("_words")
def test_every_row_that_cannot_be_used_is_named(run, tmp_path):
    train = table(
        tmp_path / "RTE/train.tsv", "sentence1\tsentence2\tlabel", "a\tb\tmaybe", "a\t\tentailment", "a\tb\tentailment"
    )
    dev = table(tmp_path / "RTE/dev.tsv", "sentence1\tlabel", "a\tentailment")
    status, out, err = run("check", tmp_path / "RTE")
    assert status == 2
    assert "RTE; lengths in words (--vocab_file counts word pieces, which are more)" in out
    assert err.splitlines() == [
        f"error: {train}:2: unknown label 'maybe'; known are entailment, not_entailment",
        f"error: {train}:3: the text in column 'sentence2' is empty",
        f"error: {dev}:1: no column 'sentence2'; the header line reads sentence1 | label",
    ]
    assert "no problem found" not in out


@pytest.mark.usefixtures("_words")
def test_rows_that_are_left_out_are_no_reason_to_fail(run, tmp_path):
    fine = ["1\t2\t3\tOne?\tTwo?\t1"] * 1500
    path = table(tmp_path / "QQP/train.tsv", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", *fine, "breaks\t0")
    status, out, _ = run("check", tmp_path / "QQP")
    assert status == 0
    assert f"  left out       1 rows\n    {path}:1502: 2 cells where 6 are expected" in out
    assert out.endswith("\n\nrows left out: 1; duplicates: 1499\n")


# By problem, a file that has something to be said of, and what.
COUNTED = {
    "span": (
        ["question,context,answer,start", "who?,a red fox,fox,6", "why?,a red fox,fox,1"],
        "answers that are not where their start says, and are not trained on: 1 of 2: train-3",
    ),
    "classification": (
        ["text,label", *("a,Technical", "b,Billing") * 6, "c,Techncal"],
        "labels one letter apart, which may be one: 'Techncal' (1) and 'Technical' (6)",
    ),
    "similarity": (
        ["text_a,text_b,label", "a,b,0.5", "a,b,0.1"],
        "another label than an earlier row of the same text: 1 rows",
    ),
}


@pytest.mark.usefixtures("_words")
@pytest.mark.parametrize("problem", COUNTED)
def test_whatever_is_counted_changes_the_last_line(run, tmp_path, problem, caplog):
    rows, counted = COUNTED[problem]
    train = table(tmp_path / "a.csv", *rows)
    status, out, err = run("check", "--task_name=custom", f"--problem={problem}", f"--train_file={train}")
    assert (status, err, caplog.messages) == (0, "", [])
    assert f"  warning        {counted}" in out
    assert out.splitlines()[-1].startswith("every row can be used; warnings: ")


@pytest.mark.usefixtures("_words")
def test_rows_that_may_be_skipped_are_listed_as_left_out(run, tmp_path):
    train = table(tmp_path / "a.csv", "text,label", *("a,0", "b,1") * 5, ",1", ",0")
    status, out, err = run("check", "--task_name=custom", f"--train_file={train}", "--skip_bad_rows")
    assert (status, err) == (0, "")
    assert f"left out       2 rows\n    {train}:12: the text" in out
    assert out.endswith("rows left out: 2; duplicates: 8\n")


@pytest.mark.usefixtures("_words")
def test_a_regression_is_described_by_its_numbers(run, tmp_path):
    table(tmp_path / "stsb/train.tsv", "sentence1\tsentence2\tscore", "a\tb\t1", "a\tb\t4")
    assert "  labels         1 to 4, mean 2.500, deviation 1.500\n" in run("check", tmp_path / "stsb")[1]


@pytest.mark.usefixtures("_words")
def test_own_data_is_checked_by_the_flags_that_it_is_trained_with(run, tmp_path):
    train = table(tmp_path / "a.csv", "title,body,tags", "one,,x|y", ",two,", "three,and four,y")
    test = table(tmp_path / "b.csv", "title,body", "four,")
    flags = ("--task_name=custom", "--text_a=title,body", "--label_column=tags", "--problem=multi_label", "--label_separator=|")
    status, out, _ = run("check", *flags, f"--train_file={train}", f"--test_file={test}")
    assert status == 0
    assert "  labels         x: 1 (33.3%), y: 2 (66.7%)\n  length         mean 3.7, median 3, longest 5\n" in out
    assert f"test: {test}\n  rows           1\n" in out
    status, _, err = run("check", *flags, f"--train_file={tmp_path / 'none.csv'}", f"--dev_file={train}")
    assert (status, err) == (2, f"error: {tmp_path}/none.csv: cannot read the file: No such file or directory\n")


@pytest.mark.usefixtures("_words")
def test_tags_are_described_by_their_share_of_words(run, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a U-X\nb O\nc O\nd O\n\ne O\n", encoding="utf-8")
    status, output, _ = run("check", "--task_name=custom", "--problem=tags", f"--train_file={path}")
    assert status == 0
    assert "rows           2" in output
    assert "labels         O: 4 (80.0%), B-X: 1 (20.0%), I-X: 0 (0.0%)" in output


def test_what_nobody_publishes_is_not_fetched(run):
    status, _, errors = run("fetch", "CoNLL2003")
    assert status == 2
    assert errors.startswith("error: data fetch: CoNLL2003 has no files to fetch; put yours into data/CoNLL2003")


@pytest.mark.usefixtures("_words")
def test_questions_are_checked_with_their_settings(run, tmp_path):
    train = table(tmp_path / "a.csv", "context,question,answer", "a red fox,who?,fox", "a red fox,why?,")
    flags = ("--task_name=custom", "--problem=span", f"--train_file={train}")
    status, out, _ = run("check", *flags, "--version_2_with_negative")
    assert status == 0
    assert "  rows           2\n  labels         1 different\n  length         mean 7.0, median 7, longest 7\n" in out
    assert "  need several windows at 64: 0.0%, 128: 0.0%, 256: 0.0%, 512: 0.0%\n" in out
    assert "  no label       1 rows (50.0%): train-3\n" in out
    status, _, err = run("check", *flags)
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"error: {train}:3: the question has no answer")


@pytest.mark.usefixtures("_words")
def test_splits_that_are_missing_beside_others_are_named(run, tmp_path, caplog):
    folder = tmp_path / "MNLI"
    header, row = "sentence1\tsentence2", "a\tb"
    table(folder / "dev_matched.tsv", f"{header}\tgold_label", f"{row}\tneutral")
    table(folder / "test_mismatched.tsv", header, row)
    status, out, _ = run("check", folder)
    assert (status, caplog.messages) == (0, [])
    missing = [line for line in out.splitlines() if line.endswith("is not there")]
    assert missing == [f"{split}: {folder}/{split}.tsv is not there" for split in ("train", "dev_mismatched", "test_matched")]


@pytest.mark.usefixtures("_words")
def test_texts_that_repeat_and_contradict_each_other_are_counted(run, tmp_path):
    rows = [f"the same,{label}" for label in "ab" * 10]
    train = table(tmp_path / "a.csv", "text,label", *rows)
    status, out, _ = run("check", "--task_name=custom", f"--train_file={train}")
    assert status == 0
    assert "  duplicates     19 rows (95.0%): train-3, train-4, train-5, ...\n" in out
    warning = "another label than an earlier row of the same text: 10 rows (50.0%): train-3, train-5, train-7, ..."
    assert out.endswith(f"  warning        {warning}\n\nevery row can be used; warnings: 1; duplicates: 19\n")


@pytest.mark.usefixtures("_words")
def test_ids_that_repeat_are_counted(run, tmp_path):
    test = table(tmp_path / "a.csv", "text,id", "one,1", "two,2", "three,1")
    out = run("check", "--task_name=custom", f"--test_file={test}", "--id_column=id")[1]
    assert "  warning        the id of an earlier row: 1 rows (33.3%): 1\n" in out


@pytest.mark.usefixtures("_words")
@pytest.mark.parametrize(
    ("labels", "warns"),
    [
        ([f"{n / 10}" for n in range(40)], True),
        ([f"{n % 25}" for n in range(40)], True),
        ([f"{n % 5}" for n in range(40)], False),
        ([f"name{n}" for n in range(40)], False),
    ],
)
def test_numbers_that_are_taken_for_classes_are_called_so(run, tmp_path, labels, warns):
    train = table(tmp_path / "a.csv", "text,label", *(f"text {n},{label}" for n, label in enumerate(labels)))
    out = run("check", "--task_name=custom", f"--train_file={train}")[1]
    warning = f"{len(set(labels))} classes of 40 rows, all numbers: --problem=regression learns numbers"
    assert (warning in out) == warns


@pytest.mark.usefixtures("_words")
def test_a_folder_without_data_is_refused(run, tmp_path):
    assert run("check", tmp_path, "--task_name=RTE")[2] == f"error: {tmp_path}: none of the files of RTE is there\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["fech", "MRPC"], "data: unknown action 'fech'; did you mean fetch? (known: check, fetch)"),
        (["fetch"], "data fetch: name a task, as in data fetch MRPC"),
        (["fetch", "custom"], "--task_name=custom is your own data, there is nothing to fetch"),
        (["fetch", "AX", "--sha256=1,2"], "--sha256 takes 1 sums for AX, with commas: AX.tsv"),
        (["check"], "data check: name a folder, or --task_name=custom and its files"),
        (["check", "--task_name=RTE"], "data check: name the folder of RTE"),
        (
            ["check", "--task_name=custom"],
            "data check: --task_name=custom takes --train_file, --dev_file, --test_file and no folder",
        ),
        (
            ["check", "x", "--task_name=RTE", "--text_a=1"],
            "--text_a belongs to --task_name=custom; RTE does not take it",
        ),
        (["check", "x", "y"], "unexpected argument 'y'; flags are written --name=value"),
    ],
)
def test_refuses(run, arguments, problem):
    assert run(*arguments) == (2, "", f"error: {problem}\n")


def test_a_folder_says_by_its_name_which_task_it_is_of(run, tmp_path):
    folder = tmp_path / "MRCP"
    folder.mkdir()
    status, _, err = run("check", folder)
    expected = (
        f"error: {folder}: the name of the folder is that of no task, add --task_name: unknown task 'MRCP'; did you mean MRPC?"
    )
    assert (status, err.startswith(expected)) == (2, True)


def test_a_folder_that_is_not_there_is_called_so(run, tmp_path):
    assert run("check", tmp_path / "nodir") == (2, "", f"error: {tmp_path}/nodir: no such folder\n")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("fetch", "--help"), ("check", "-h")])
def test_help_explains_both_actions(capsys, arguments):
    assert data.main(["data", *arguments]) == 0
    assert capsys.readouterr().out == data.help_text()
    assert max(map(len, data.help_text().splitlines())) <= 132


def test_the_vocabulary_is_that_of_the_flag_the_variable_or_the_default_checkpoint(vocab_file, monkeypatch, tmp_path):
    base = {"BERT_BASE_DIR": str(tmp_path)}
    assert check_data.find_ruler(str(vocab_file), {}).unit == f"word pieces of {vocab_file}"
    assert check_data.find_ruler(None, base).unit == f"word pieces of {vocab_file}"
    monkeypatch.setattr(check_data, "default_vocabulary", lambda _: vocab_file)
    ruler = check_data.find_ruler(None, {})
    assert (ruler.unit, ruler.size("AB a c")) == (f"word pieces of {vocab_file}", 4)


def test_the_default_vocabulary_is_that_of_the_default_checkpoint():
    from bert_tf.checkpoints import default, huggingface

    assert check_data.default_vocabulary({}) == ROOT / "checkpoints" / default.NAME / huggingface.VOCABULARY_NAME


def test_tensorflow_is_left_out(tmp_path):
    folder = tmp_path / "CoLA"
    for name, text in COLA.items():
        table(folder / name).write_bytes(text)
    code = "import sys; from bert_tf.__main__ import main; main(sys.argv); print('tensorflow' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, "data", "check", str(folder)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("no problem found\nFalse\n")
