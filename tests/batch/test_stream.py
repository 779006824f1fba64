"""Files and pipes become predictions."""

import contextlib
import csv
import gzip
import io
import json
import os
import select
import shutil
import stat
import threading
import types

import numpy as np
import pytest

from bert_tf.batch import inputs, loading, stream
from bert_tf.batch.file_pairs import FilePair, OutputForm
from bert_tf.batch.job import Columns, ModelOverrides
from bert_tf.batch.session import Predictor
from bert_tf.errors import DataError, OutputError
from tests.batch.runs import Counting, inference
from tests.tiny import FILLERS, HALVES

ROWS = 11
CHUNK = 3


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(inputs, "CHUNK", CHUNK)


@pytest.fixture(scope="module")
def model(run):
    return loading.load(str(run / "model.ckpt-100"), ModelOverrides())


@pytest.fixture(scope="module")
def reads(model):
    return inputs.inputs(model, Columns(text_a="1", text_b="2", file_format="tsv"), task_name=None, skip_bad_rows=False)


@pytest.fixture(scope="module")
def predictor(model, reads):
    made = Predictor(model, reads.family, inference())
    yield made
    made.close()


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text(text())
    return path


def text(rows=ROWS, seed=0):
    """Lines of different lengths."""
    rng = np.random.default_rng(seed)
    words = [*HALVES[0], *HALVES[1], *FILLERS[:8]]
    sentences = (" ".join(rng.choice(words, rng.integers(1, 9))) for _ in range(2 * rows))
    return "".join(f"{a}\t{b}\n" for a, b in zip(sentences, sentences))


def predict(source, output, reads, predictor, **settings):
    stream.predict(FilePair(str(source), str(output)), reads, predictor, settings)


def test_a_row_for_each_line_in_their_order(source, tmp_path, reads, predictor):
    predict(source, tmp_path / "out.tsv", reads, predictor)
    header, *rows = (line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines())
    assert header == ["id", "label", "probability_0", "probability_1"]
    assert [row[0] for row in rows] == [f"test-{line}" for line in range(1, ROWS + 1)]
    examples = [example for chunk in reads.chunks(str(source)) for example in chunk]
    alone = [
        predictor.lines(1, [example], predictor.read([example]), OutputForm()).decode().split("\t") for example in examples
    ]
    np.testing.assert_allclose([float(row[2]) for row in rows], [float(row[2]) for row in alone], rtol=1e-5)
    assert len({row[2] for row in rows}) > CHUNK  # rows are not mistaken for others


@pytest.mark.parametrize(("ending", "killed_at"), [(".tsv", 0), (".csv", 2), (".jsonl.gz", 1), (".csv.gz", 3)])
def test_killed_and_started_again_gives_the_same_bytes(source, tmp_path, reads, predictor, ending, killed_at):
    out, whole = tmp_path / f"out{ending}", tmp_path / f"whole{ending}"
    predict(source, whole, reads, predictor)
    with pytest.raises(KeyboardInterrupt):
        predict(source, out, reads, Counting(predictor, killed_at))
    assert not out.exists()
    if killed_at:
        with open(f"{out}.part", "ab") as part:
            part.write(b"\x1f\x8bhalf a")  # of a chunk that was being written
    again = Counting(predictor)
    predict(source, out, reads, again)
    assert again.chunks == list(range(killed_at, 4))
    assert out.read_bytes() == whole.read_bytes()


def test_the_name_says_what_is_written(source, tmp_path, reads, predictor):
    for ending in ("tsv", "csv", "jsonl", "tsv.gz", "csv.gz", "jsonl.gz"):
        predict(source, tmp_path / f"out.{ending}", reads, predictor)
    plain = {form: (tmp_path / f"out.{form}").read_bytes() for form in ("tsv", "csv", "jsonl")}
    assert {form: gzip.decompress((tmp_path / f"out.{form}.gz").read_bytes()) for form in plain} == plain
    header, *rows = ("\t".join(row) for row in csv.reader(plain["csv"].decode().splitlines(), strict=True))
    assert [header, *rows] == plain["tsv"].decode().splitlines()
    objects = [json.loads(line) for line in plain["jsonl"].decode().splitlines()]
    assert ["\t".join(map(str, line.values())) for line in objects] == rows
    assert list(objects[0]) == header.split("\t")


def test_what_is_finished_is_left_alone_until_input_or_settings_change(source, tmp_path, reads, predictor):
    for change, computed in ((None, 4), (None, 0), ("settings", 4), ("input", 5)):
        if change == "input":
            source.write_text(text(rows=ROWS + 2))
        counting = Counting(predictor)
        predict(source, tmp_path / "out.tsv", reads, counting, weights=change is not None)
        assert len(counting.chunks) == computed


def test_pipes_say_what_files_say_and_leave_no_file_where_they_fail(source, tmp_path, reads, predictor, monkeypatch):
    def piped(rows, incoming, outgoing, predictor):
        written = io.BytesIO()
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(rows)))
        monkeypatch.setattr("sys.stdout", types.SimpleNamespace(buffer=written))
        predict(incoming, outgoing, reads, predictor)
        return written.getvalue() if outgoing == "-" else outgoing.read_bytes()

    whole, out = tmp_path / "whole.tsv", tmp_path / "out.tsv"
    predict(source, whole, reads, predictor)
    with pytest.raises(KeyboardInterrupt):
        piped(source.read_bytes(), "-", out, Counting(predictor, killed_at=2))
    assert not out.exists()
    for incoming, outgoing in (("-", "-"), (source, "-"), ("-", out)):
        assert piped(source.read_bytes(), incoming, outgoing, predictor) == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tsv", "out.tsv", "whole.tsv", "whole.tsv.job.json"]
    # A file that a pipe replaced is made again.
    expected = whole.read_bytes()
    assert piped(text(seed=1).encode(), "-", whole, predictor) != expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tsv", "out.tsv", "whole.tsv"]
    predict(source, whole, reads, predictor)
    assert whole.read_bytes() == expected


def test_the_output_of_a_notebook_takes_no_bytes(monkeypatch):
    monkeypatch.setattr("sys.stdout", io.StringIO())
    with pytest.raises(OutputError, match="name a file"), stream.opened("-", None):
        pass


def test_what_a_killed_command_left_of_a_pipe_is_deleted(tmp_path):
    for assemble in (None, lambda parts, whole: shutil.copy(parts, whole)):
        with stream.opened(str(tmp_path / "out.npz"), assemble) as file:
            file.write(b"half")
            file.flush()
            left = {path.name: path.read_bytes() for path in tmp_path.glob(".*") if path.suffix == ".tmp"}
        for name, content in left.items():
            (tmp_path / name.replace(f".{os.getpid()}-", ".1-")).write_bytes(content)  # of another process
        with stream.opened(str(tmp_path / "out.npz"), assemble) as file:
            file.write(b"whole")
        assert b"half" in left.values()
        assert [path.name for path in tmp_path.iterdir()] == ["out.npz"]


def test_a_device_or_a_link_is_not_replaced(source, tmp_path, reads, predictor):
    predict(source, "/dev/null", reads, predictor)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OutputError, match="/dev/full: cannot write: No space left on device"):
        predict(source, "/dev/full", reads, predictor)
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk/out.tsv")
    predict(source, tmp_path / "link", reads, predictor)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / "out.tsv").read_text().count("\n") == ROWS + 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "in.tsv", "link"]


def test_a_compressed_file_and_a_named_pipe_are_read(source, tmp_path, reads, predictor):
    predict(source, tmp_path / "whole.tsv", reads, predictor)
    (tmp_path / "in.tsv.gz").write_bytes(gzip.compress(source.read_bytes()))
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(source.read_bytes(),))
    writer.start()
    for name in ("in.tsv.gz", "pipe"):
        predict(tmp_path / name, tmp_path / "out.tsv", reads, predictor)
        assert (tmp_path / "out.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    writer.join()


def test_what_an_idle_pipe_has_said_is_predicted(reads, predictor, monkeypatch):
    """Each line waits for the answer to the one before it: who waits for a full batch waits for ever."""
    with contextlib.ExitStack() as opened:
        (source, says), (answers, output) = (
            [opened.enter_context(os.fdopen(end, mode, buffering)) for end, mode in zip(os.pipe(), ("rb", "wb"))]
            for buffering in (-1, 0)
        )
        monkeypatch.setattr(inputs, "CHUNK", 1000)
        monkeypatch.setattr(stream, "PATIENCE_S", 0.01)
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=source))
        monkeypatch.setattr("sys.stdout", types.SimpleNamespace(buffer=output))
        predicts = threading.Thread(target=predict, args=("-", "-", reads, predictor), daemon=True)
        predicts.start()
        predicted = []
        for line in text(rows=3).encode().splitlines(keepends=True):
            says.write(line)
            says.flush()
            for _ in range(1 if predicted else 2):  # the header comes with the first
                assert select.select([answers], [], [], 60)[0]
                predicted.append(answers.readline().decode().split("\t")[0])
        says.close()
        predicts.join(timeout=60)
    assert predicted == ["id", "test-1", "test-2", "test-3"]


def test_a_pipe_of_another_command_gets_lines_at_once(source, reads, predictor):
    """As `--output=>(command)`: what is written to a file is copied at the end."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as answers, contextlib.closing(os.fdopen(write, "wb")):
        has_answer = []
        watching = Counting(predictor, note=lambda _: has_answer.append(select.select([answers], [], [], 0)[0] == [answers]))
        predict(source, f"/dev/fd/{write}", reads, watching)
    assert has_answer == [False] + [True] * 3


def test_no_more_is_in_memory_than_a_few_chunks(tmp_path, reads, predictor):
    read, ahead_of_output = [], []

    class Reads:
        def chunks(self, source, **how):
            for chunk in reads.chunks(source, **how):
                read.append(chunk)
                yield chunk

    (tmp_path / "in.tsv").write_text(text(rows=40 * CHUNK))
    watching = Counting(predictor, note=lambda number: ahead_of_output.append(len(read) - number))
    predict(tmp_path / "in.tsv", tmp_path / "out.tsv", Reads(), watching)
    assert len(ahead_of_output) == 40
    assert max(ahead_of_output) <= 3  # the one in use, one that waits, one in the making


def test_rows_before_a_bad_one_are_kept(source, tmp_path, reads, predictor):
    source.write_text(text() + "rain\n")
    with pytest.raises(DataError, match=r"in\.tsv:12: 1 cells, expected 2"):
        predict(source, tmp_path / "out.tsv", reads, predictor)
    assert (tmp_path / "out.tsv.part").read_text().count("\n") == 1 + 3 * CHUNK
