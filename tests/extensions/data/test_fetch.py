"""Data that is fetched, from a server that breaks off too."""

import functools
import hashlib
import http.server
import io
import os
import re
import threading
import types
import urllib.error
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import bert_tf
from bert_tf.errors import DataError
from bert_tf.extensions.data import fetch
from bert_tf.tasks.glue import TASKS
from tests.tasks.refusals import refusal

COLA = {"train.tsv": b"own\t1\t\tOne.\n", "dev.tsv": b"own\t0\t*\tTwo the.\n", "test.tsv": b"index\tsentence\n0\tThree.\n"}
COLA_ZIP = "glue/data/CoLA.zip"


@pytest.fixture
def site(monkeypatch):
    """A server on the loopback instead of the published one; each of `breaks` cuts a reply off after as many bytes."""
    served = types.SimpleNamespace(files={}, breaks=[], asked=[])

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802
            served.asked.append(self.path[1:])
            body = served.files.get(self.path[1:])
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: served.breaks.pop(0) if served.breaks else None])

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # a client that has read enough: it would be printed among what the command says
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "SITE", f"http://127.0.0.1:{server.server_port}/")
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def data_dir(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def run(call, data_dir):
    return lambda *words: call("data", "fetch", *words, f"--data_dir={data_dir}")


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


def test_an_archive_becomes_a_folder_and_its_sum_is_told_and_kept(site, run, data_dir):
    body = site.files[COLA_ZIP] = archive({**COLA, "original/tokenized.tsv": b"no", "README": b"no"})
    rest = data_dir / ".downloads/.CoLA.zip.4711.tmp"  # of a fetch that was killed
    rest.parent.mkdir(parents=True)
    rest.write_bytes(b"PK")
    status, out, err = run("cola")
    assert (status, err) == (0, "")
    url = f"{fetch.SITE}{COLA_ZIP}"
    assert out.splitlines() == [
        f"{url}: {len(body)} bytes, sha256 {digest(body)}; not known before, noted in fetched.sha256",
        f"{data_dir}/CoLA: dev.tsv, test.tsv, train.tsv",
    ]
    assert contents(data_dir / "CoLA") == COLA
    assert (data_dir / "fetched.sha256").read_text() == f"{digest(body)}  {url}\n"
    assert sorted(path.name for path in data_dir.iterdir()) == ["CoLA", "fetched.sha256"]
    rest.parent.mkdir()
    (rest.parent / "CoLA.zip").write_bytes(body)  # of a fetch that was killed at its end
    assert run("CoLA") == (0, f"{data_dir}/CoLA: already exists; delete the folder to fetch it again\n", "")
    assert not rest.parent.exists()
    assert len(site.asked) == 1


def test_a_folder_may_be_a_link_to_another_disk(site, run, data_dir, tmp_path):
    site.files[COLA_ZIP] = archive(COLA)
    data_dir.mkdir()
    (data_dir / "CoLA").symlink_to(tmp_path / "disk" / "CoLA")
    assert run("CoLA")[0] == 0
    assert contents(data_dir / "CoLA") == COLA


def test_tasks_that_are_fetched_at_once_keep_their_sums_and_one_is_fetched_once(site, data_dir, monkeypatch):
    site.files.update(dict.fromkeys((COLA_ZIP, "glue/data/RTE.zip"), archive(COLA)))
    both, received = threading.Barrier(2, timeout=60), fetch._received

    def together(url):
        both.wait()
        yield from received(url)

    monkeypatch.setattr(fetch, "_received", together)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda task: bert_tf.fetch_data(task, data_dir=data_dir), ("CoLA", "RTE", "CoLA")))
    assert sorted(site.asked) == sorted(site.files)
    sums = (data_dir / "fetched.sha256").read_text().splitlines()
    assert [line.partition(fetch.SITE)[2] for line in sums] == sorted(site.files)
    assert sorted(path.name for path in data_dir.iterdir()) == ["CoLA", "RTE", "fetched.sha256"]


def test_a_failed_download_is_one_line_and_leaves_nothing(site, run, data_dir, monkeypatch):
    body = site.files[COLA_ZIP] = archive(COLA)
    site.breaks = [100]
    why = f"the connection broke off {len(body) - 100} bytes before the end"
    remedy = "try again, or name a folder that has it with --from"
    assert run("CoLA") == (2, "", f"error: {fetch.SITE}{COLA_ZIP}: cannot be fetched: {why}; {remedy}\n")
    assert run("RTE") == (2, "", f"error: {fetch.SITE}glue/data/RTE.zip: cannot be fetched: 404 Not Found\n")
    assert list(data_dir.iterdir()) == []
    assert run("CoLA")[0] == 0
    assert contents(data_dir / "CoLA") == COLA
    assert len(site.asked) == 3
    monkeypatch.setattr(fetch, "SITE", "http://127.0.0.1:9/")  # no server
    status, _, err = run("RTE")
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith("error: http://127.0.0.1:9/glue/data/RTE.zip: cannot be fetched: ")


def test_sums_in_another_encoding_are_named(run, data_dir):
    """As Out-File of PowerShell writes them."""
    data_dir.mkdir()
    (data_dir / "fetched.sha256").write_text("ab  https://x", encoding="utf-16")
    remedy = "the file is UTF-16; iconv -f UTF-16 -t UTF-8 converts it"
    assert run("CoLA") == (2, "", f"error: {data_dir}/fetched.sha256: {remedy}\n")


def test_a_file_that_changed_since_it_was_fetched_is_refused_and_a_sum_from_elsewhere_checked(site, run, data_dir):
    before = site.files["glue/data/AX.tsv"] = b"index\tsentence1\tsentence2\n0\ta\tb\n"
    assert run("AX")[0] == 0
    assert contents(data_dir / "AX") == {"diagnostic.tsv": before}
    (data_dir / "AX/diagnostic.tsv").unlink()
    after = site.files["glue/data/AX.tsv"] = before + b"1\tc\td\n"
    why = f"has sha256 {digest(after)}, not {digest(before)} as fetched before, see fetched.sha256; it was not used"
    assert run("AX") == (2, "", f"error: {fetch.SITE}glue/data/AX.tsv: {why}\n")
    assert run("AX", f"--sha256={digest(after).upper()}")[0] == 0  # it was meant to change
    assert contents(data_dir / "AX") == {"diagnostic.tsv": after}
    body, folder = archive(COLA), data_dir / "CoLA"
    site.files[COLA_ZIP] = body
    status, _, err = run("CoLA", f"--sha256={digest(b'else')}")
    assert (status, f"not {digest(b'else')} as --sha256 says; it was not used" in err) == (2, True)
    assert not folder.exists()
    status, out, _ = run("CoLA", f"--sha256={digest(body)}")
    assert (status, ", as expected\n" in out) == (0, True)
    there = "already exists, made from files with these sums; delete the folder to fetch it again"
    assert run("CoLA", f"--sha256={digest(body)}") == (0, f"{folder}: {there}\n", "")
    other = "exists, but is not known to be from files with these sums; delete the folder to fetch it again"
    assert run("CoLA", f"--sha256={digest(b'else')}") == (2, "", f"error: {folder}: {other}\n")


DEFLATE64 = re.sub(rb"(PK\x01\x02.{6}|PK\x03\x04.{4}).{2}", b"\\1\x09\x00", archive(COLA), flags=re.DOTALL)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html>no archive</html>", "the archive cannot be read: File is not a zip file"),
        (archive({"train.tsv": b"x"}), "the archive holds no dev.tsv"),
        (archive(COLA).replace(b"Two the", b"Two thy"), "the archive cannot be read: Bad CRC-32 for file 'CoLA/dev.tsv'"),
        (DEFLATE64, "the archive cannot be read: That compression method is not supported"),
        (archive({**COLA, "train.tsv": bytes(1 << 20)}), "its files have 1 MB, more than 0; it was not used"),
        (archive(COLA) + bytes(1 << 21), "has more than 1 MB; it was not used"),
    ],
    ids=range(6),
)
def test_what_is_no_archive_of_the_task_is_refused_and_not_kept(site, run, data_dir, monkeypatch, body, problem):
    monkeypatch.setattr(fetch, "_MOST_BYTES", 3 << 19)
    monkeypatch.setattr(fetch, "_MOST_UNPACKED", 1 << 19)
    site.files[COLA_ZIP] = body
    status, _, err = run("CoLA")
    assert (status, err.count("\n")) == (2, 1)
    assert err.endswith(f"CoLA.zip: {problem}\n")
    assert [path for path in data_dir.rglob("*") if path.is_file()] == []
    site.files[COLA_ZIP] = archive(COLA)
    assert run("CoLA")[0] == 0


def test_no_redirect_leaves_https():
    request = urllib.request.Request("https://a/b")
    follow = functools.partial(fetch._Redirects().redirect_request, request, None, 302, "Found", {})
    for to in ("http://a/b", "ftp://a/b"):
        with pytest.raises(urllib.error.URLError, match=f"redirected from https to {to}, which is not followed"):
            follow(to)
    assert follow("https://c/d").full_url == "https://c/d"
    assert any(isinstance(handler, fetch._Redirects) for handler in fetch._opener.handlers)


def test_xnli_is_two_archives_in_its_own_folders(site, run, data_dir, call):
    header = b"language\tgold_label\tsentence1\tsentence2\nsw\tneutral\ta\tb\n"
    site.files["XNLI/XNLI-1.0.zip"] = archive({"xnli.dev.tsv": header, "xnli.test.tsv": header}, "XNLI-1.0/")
    translated = {f"multinli.train.{language}.tsv": b"premise\thypo\tlabel\na\tb\tneutral\n" for language in ("sw", "ur")}
    site.files["XNLI/XNLI-MT-1.0.zip"] = archive(translated, "XNLI-MT-1.0/multinli/")
    assert run("XNLI-sw")[0] == 0
    status, out, _ = call("data", "check", data_dir / "XNLI")
    assert (status, out.count("  rows           ")) == (0, 3)
    assert contents(data_dir / "XNLI/XNLI-MT-1.0/multinli") == translated


def test_what_a_kill_has_left_is_completed_or_deleted(site, data_dir, monkeypatch):
    """The folder has a file of one's own, so that the published ones are moved into it one by one."""
    translated = {f"multinli.train.{language}.tsv": b"premise\thypo\tlabel\n" for language in ("de", "sw", "ur")}
    site.files["XNLI/XNLI-1.0.zip"] = archive({"xnli.dev.tsv": b"a", "xnli.test.tsv": b"a"})
    site.files["XNLI/XNLI-MT-1.0.zip"] = archive(translated)
    folder, rest = data_dir / "XNLI/XNLI-MT-1.0/multinli", data_dir / "XNLI/.fetch-XNLI-1.0-a1b2/made"
    for made in (folder, rest):
        made.mkdir(parents=True)
        (made / "notes").write_bytes(b"own")
    moved, replace = [], os.replace

    def killed(source, target):
        moved.append(Path(target).parent == folder and Path(target).suffix == ".tsv")
        if sum(moved) == 2:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(fetch.os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            bert_tf.fetch_data("XNLI", data_dir=data_dir)
    bert_tf.fetch_data("XNLI", data_dir=data_dir)
    assert contents(folder) == {**translated, "notes": b"own"}
    assert sorted(path.name for path in (data_dir / "XNLI").iterdir()) == ["XNLI-1.0", "XNLI-MT-1.0"]
    assert len(site.asked) == 2


MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
MRPC_TRAIN = (MRPC_HEADER, '1\t10\t11\tIt " rains .\tRain .', "0\t12\t13\tOne .\tTwo .", "1\t14\t15\tThree .\tDrei .")
MRPC_TEST = (MRPC_HEADER, "1\t20\t21\tFour .\tVier .", "0\t22\t23\tFive .\tSix .")
TRAIN_NAME, TEST_NAME, DEV_IDS_NAME = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"
CORPUS = {
    TRAIN_NAME: "\n".join(["\ufeff" + MRPC_TRAIN[0], *MRPC_TRAIN[1:], ""]).encode(),
    TEST_NAME: "\n".join(["\ufeff" + MRPC_TEST[0], *MRPC_TEST[1:], ""]).encode(),
    DEV_IDS_NAME: b"12\t13\n",
}


def test_mrpc_is_made_of_the_corpus_and_every_task_that_is_published_can_be_fetched(site, run, data_dir):
    for part in fetch.DATASETS["MRPC"][0].parts:
        site.files[part.address] = CORPUS[part.name]
    status, _, err = run("MRPC")
    assert (status, "as published; it was not used" in err) == (2, True)  # these texts are made up
    bert_tf.fetch_data("MRPC", data_dir=data_dir, sha256=[digest(text).upper() for text in CORPUS.values()])
    lines = {name: text.decode("utf-8-sig").splitlines() for name, text in contents(data_dir / "MRPC").items()}
    assert sorted(lines) == ["dev.tsv", "test.tsv", "train.tsv"]
    assert (lines["train.tsv"], lines["dev.tsv"]) == ([*MRPC_TRAIN[:2], MRPC_TRAIN[3]], [MRPC_HEADER, MRPC_TRAIN[2]])
    assert set(fetch.DATASETS) == {*TASKS, "XNLI"}
    for name, task in TASKS.items():
        wanted = {task.file("", split).name for splits in task.split_names.values() for split in splits}
        assert [(dataset.folder, {*dataset.files}) for dataset in fetch.DATASETS[name]] == [(name, wanted)]


def corpus(folder, train=MRPC_TRAIN, test=MRPC_TEST, ids=("12\t13",), end="\n"):
    """Writes the corpus; returns the paths of its files."""
    paths = []
    for name, start, lines in (("train", "\ufeff", train), ("test", "\ufeff", test), ("ids", "", ids)):
        paths.append(folder / f"{name}.txt")
        paths[-1].write_bytes((start + "".join(f"{line}{end}" for line in lines)).encode())
    return paths


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_pairs_of_the_list_are_dev_and_test_is_numbered(tmp_path, end):
    assert fetch.split_mrpc(*corpus(tmp_path, end=end)) == {
        "train.tsv": f"\ufeff{MRPC_HEADER}\n{MRPC_TRAIN[1]}\n{MRPC_TRAIN[3]}\n",
        "dev.tsv": f"\ufeff{MRPC_HEADER}\n{MRPC_TRAIN[2]}\n",
        "test.tsv": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t20\t21\tFour .\tVier .\n1\t22\t23\tFive .\tSix .\n",
    }
    dev = fetch.split_mrpc(*corpus(tmp_path, ids=("14\t15", "10\t11")))["dev.tsv"]
    assert [line.split("\t")[1] for line in dev.splitlines()[1:]] == ["10", "14"]  # in the order of the corpus
    for name, text in fetch.split_mrpc(*corpus(tmp_path)).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert [len(TASKS["MRPC"].examples(tmp_path, name)) for name in ("train", "dev", "test")] == [2, 1, 2]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"ids": ("12\t13", "97\t96", "98\t99", "95\t94")}, "{2}:2: {0} lacks 3 of these pairs, the first is 97 and 96"),
        ({"test": (*MRPC_TEST, "1\t2\t3")}, "{1}:4: 3 cells, expected 5; cells are separated by tabs"),
        (None, "{2}: cannot read the file: No such file or directory"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, changes, problem):
    paths = corpus(tmp_path, **(changes or {}))
    if changes is None:
        paths[2].unlink()
    assert refusal(DataError, fetch.split_mrpc, *paths) == problem.format(*paths)


@pytest.mark.parametrize("ids_name", ["dev_ids.tsv", "mrpc_dev_ids.tsv"])
def test_mrpc_is_made_of_files_that_the_user_has(tmp_path, ids_name, monkeypatch, caplog):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    source = tmp_path / "data/MRPC"  # where its files are to lie
    source.mkdir(parents=True)
    for name, text in CORPUS.items():
        (source / (ids_name if name == DEV_IDS_NAME else name)).write_bytes(text)
    assert bert_tf.fetch_data("MRPC", source_dir=source) == [source]
    assert caplog.text.count("the result may differ too") == 3
    assert len(TASKS["MRPC"].examples(source, "train")) == 2
    assert (source / TRAIN_NAME).read_bytes() == CORPUS[TRAIN_NAME]


URL = "https://dl.fbaipublicfiles.com/senteval/senteval_data/msr_paraphrase_train.txt"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "data fetch: TASK missing: python -m bert_tf data fetch TASK; flags are written --name=value"),
        ("custom", "--task_name=custom is your own data, there is nothing to fetch"),
        ("AX --sha256=1,2", "--sha256 needs 1 sums for AX, with commas: AX.tsv"),
        ("MRPC --from={tmp}", f"{{tmp}}: holds no msr_paraphrase_train.txt; it is published at {URL}"),
        ("CoNLL2003", "data fetch: CoNLL2003 has no files to fetch; put yours into data/CoNLL2003"),
    ],
)
def test_what_cannot_be_fetched_is_one_line(words, problem, run, tmp_path):
    status, out, err = run(*words.format(tmp=tmp_path).split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: {problem.format(tmp=tmp_path)}")
