"""Text becomes shards: what the command writes, says and refuses, and that neither workers nor kills change a byte."""

import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import BertError, LostPeerError, UnreadTextError
from bert_tf.extensions.pretrain import opening
from bert_tf.extensions.pretrain.corpus import documents, processes, rows, shards, store
from bert_tf.extensions.pretrain.corpus.records import Records, framed
from bert_tf.tokenization.vocabulary import Vocabulary
from tests import classifier
from tests.extensions.pretrain.corpus.conftest import TOKENS

SHARDS = 3


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder with text.txt and vocab.txt."""
    folder = tmp_path_factory.mktemp("source")
    draw = np.random.default_rng(4)
    sentences = (" ".join(draw.choice(list("abcdefghij"), draw.integers(1, 9))) for _ in range(900))
    (folder / "text.txt").write_text("".join(f"{line}\n" + "\n" * (number % 9 == 8) for number, line in enumerate(sentences)))
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    return folder


def arguments(source, output=None, **flags):
    values = {
        "input_file": source / "text.txt",
        "output_file": output,
        "vocab_file": source / "vocab.txt",
        "max_seq_length": 32,
        "dupe_factor": 2,
        "num_shards": SHARDS,
        "workers": 1,
        **flags,
    }
    return ["pretraining-data", *(f"--{name}={value}" for name, value in values.items() if value is not None)]


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def made(source, tmp_path_factory):
    """What one process writes that nobody stops."""
    folder = tmp_path_factory.mktemp("made")
    assert classifier.pretraining_data(arguments(source, folder / "x.tfrecord")) == 0
    return contents(folder)


def test_there_are_shards_of_the_rows_of_the_text(source, made, tmp_path):
    shards = [f"x-{number:05d}-of-{SHARDS:05d}.tfrecord" for number in range(SHARDS)]
    assert list(made) == [*shards, "x.tfrecord.json"]
    manifest = json.loads(made["x.tfrecord.json"])
    tally = manifest["tally"]
    assert manifest["documents"] == 100
    assert manifest["bytes"] == {name: len(made[name]) for name in shards}
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    paths = [str(tmp_path / name) for name in shards]
    records = Records.open(paths, Vocabulary.from_file(source / "vocab.txt"), folder=tmp_path / "index")
    written = records.read_rows(np.arange(len(records)))
    assert (records.seq_length, records.max_predictions, len(records)) == (32, 20, tally["rows"])
    assert written.input_mask.sum() == tally["tokens"]
    assert written.slots.sum() == tally["masks"]
    assert written.next_sentence_labels.sum() == tally["random_next"]


@pytest.mark.parametrize("workers", [1, 4])
def test_shards_depend_neither_on_workers_nor_on_blocks(source, made, tmp_path, monkeypatch, workers):
    monkeypatch.setattr(documents, "PIECE", 1 << 12)
    monkeypatch.setattr(rows, "_TASK", 1 << 10)
    monkeypatch.setattr(shards, "_BLOCK", 8)
    assert classifier.pretraining_data(arguments(source, tmp_path / "x.tfrecord", workers=workers)) == 0
    assert contents(tmp_path) == made


@pytest.mark.parametrize("note", [b'{"bytes": 1}', b"[]", b'{"bytes": 1, "tally": {}}', b"\xff", b""])
def test_damaged_notes_are_as_none(tmp_path, note):
    (tmp_path / "x").write_text(" ")
    for name in ("0.json", "x.sha256"):
        (tmp_path / name).write_bytes(note)
    assert shards.ShardPlan(None, None, 8, (str(tmp_path / "x"),), tmp_path)._noted(0) is None
    assert [opening._noted(tmp_path / "x.sha256", "key", lambda: "digest") for _ in range(2)] == ["digest"] * 2


KILLED = {
    "rows": "appending._NOTED_EVERY = 2; at(rows, 'rows_of', 30)",
    "shards": "shards._BLOCK = 8; at(shards.ShardPlan, '_write_block', 30)",
}


@pytest.mark.parametrize("moment", KILLED)
def test_a_killed_command_goes_on_to_the_same_bytes(source, made, tmp_path, monkeypatch, moment):
    monkeypatch.setattr(rows, "_TASK", 64)
    program = f"""
        import os, signal, sys
        from bert_tf.__main__ import main
        from bert_tf.extensions.pretrain.corpus import appending, rows, shards
        def at(of, name, time):
            work, times = getattr(of, name), iter(range(time))
            def killing(*given, **named):
                if next(times, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return work(*given, **named)
            setattr(of, name, killing)
        rows._TASK = {rows._TASK}
        {KILLED[moment]}
        sys.exit(main(["", *sys.argv[1:]]))
        """
    flags = arguments(source, tmp_path / "x.tfrecord")
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program), *flags], check=False)
    assert killed.returncode == -9
    assert {path.name for path in (tmp_path / "x-00000-of-00003.tfrecord.unfinished").iterdir()} >= {"tokens"}
    whole = [path for path in tmp_path.glob("x-*.tfrecord") if path.is_file()]
    assert len(whole) == (moment == "shards")
    times = [path.stat().st_mtime_ns for path in whole]
    assert classifier.pretraining_data(flags) == 0
    assert [path.stat().st_mtime_ns for path in whole] == times
    assert contents(tmp_path) == made


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (processes.LostWorkerError("it died"), "it died with fewer --workers; it continues, except from pipes\n"),
        (UnreadTextError("no", "a"), "a: no; the same command continues, except from pipes\n"),
        (LostPeerError("--beam: FlinkRunner: cannot be reached"), "--beam: FlinkRunner: cannot be reached\n"),
    ],
)
def test_a_command_that_loses_a_worker_or_server_goes_on(source, made, tmp_path, monkeypatch, capsys, error, said):
    def losing(work, tasks, *, unit, **given):
        if unit == "shard":
            raise error
        return mapped(work, tasks, unit=unit, **given)

    mapped, flags = processes.mapped, arguments(source, tmp_path / "x.tfrecord")
    monkeypatch.setattr(processes, "mapped", losing)
    assert classifier.pretraining_data(flags) == error.status
    assert capsys.readouterr().err.endswith(said)
    monkeypatch.setattr(processes, "mapped", mapped)
    monkeypatch.setattr(store, "tokenize", None)
    monkeypatch.setattr(rows, "rows_of", None)
    assert classifier.pretraining_data(flags) == 0
    assert contents(tmp_path) == made


def test_an_error_of_a_worker_of_beam_leaves_nothing(source, tmp_path, monkeypatch):
    """As of a full disk, which Beam hands on as text."""
    monkeypatch.setattr(processes, "mapped", mock.Mock(side_effect=BertError("x: cannot write; nothing was changed")))
    assert classifier.pretraining_data(arguments(source, tmp_path / "x.tfrecord")) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing(source, tmp_path, capsys, monkeypatch, call):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    assert classifier.pretraining_data(arguments(source, tmp_path / "x.tfrecord")) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("nothing was changed")
    assert not list(tmp_path.iterdir())


def test_the_same_command_again_writes_nothing(source, tmp_path, capsys):
    flags = arguments(source, tmp_path / "x.tfrecord")
    assert classifier.pretraining_data(flags) == 0
    first, times = capsys.readouterr().out, [path.stat().st_mtime_ns for path in tmp_path.iterdir()]
    assert "documents      100, with 900 sentences" in first
    assert re.search(r"masked +1[45]\.\d% of tokens: (79|8[01])\.\d% \[MASK\]", first)
    assert "of the pairs follow each other" in first
    assert classifier.pretraining_data(flags) == 0
    assert capsys.readouterr().out == first
    assert classifier.pretraining_data([*flags, "--num_shards=2"]) == 2
    assert "-of-00003.tfrecord: is of another set, which x.tfrecord.json lists; delete it, or" in capsys.readouterr().err
    assert [path.stat().st_mtime_ns for path in tmp_path.iterdir()] == times
    assert classifier.pretraining_data(arguments(source, tmp_path / "x.tfrecord", random_seed=1)) == 0
    assert capsys.readouterr().out != first


def test_without_next_sentences_rows_have_one_segment_in_files_with_commas(source, tmp_path, capsys):
    names = [str(tmp_path / name) for name in ("a", "b")]
    (tmp_path / "a").touch()  # as mktemp leaves a file to write
    assert classifier.pretraining_data(arguments(source, ",".join(names), num_shards=1, nsp=False)) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "a.json", "b.json"}
    records = Records.open(names, Vocabulary.from_file(source / "vocab.txt"), folder=tmp_path / "index")
    written = records.read_rows(np.arange(len(records)))
    assert not written.segment_ids.any()
    assert not written.next_sentence_labels.any()
    assert "follow each other" not in capsys.readouterr().out


def test_a_pipe_is_made_anew_each_time(source, tmp_path, monkeypatch, capsys):
    flags = arguments(source, tmp_path / "x", input_file="-", num_shards=1)
    for text in (b"a b\nc\n\nd\n", b"e f\ng\n\nh\n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text))))
        assert classifier.pretraining_data(flags) == 0
        assert "documents      2, with 3 sentences and 4 pieces" in capsys.readouterr().out
    vocabulary = Vocabulary.from_file(source / "vocab.txt")
    records = Records.open([str(tmp_path / "x")], vocabulary, folder=tmp_path / "index")
    assert set(records.read_rows(np.arange(len(records))).ids[:, 0]) <= set(vocabulary.ids("efgh"))


def test_the_library_writes_what_the_command_writes(source, made, tmp_path, capsys):
    flags = dict(word[2:].split("=", 1) for word in arguments(source, tmp_path / "x.tfrecord")[1:])
    numbers = {name: int(flags.pop(name)) for name in ("max_seq_length", "dupe_factor", "num_shards", "workers")}
    written = bert_tf.make_pretraining_data(**flags, **numbers)
    assert [Path(path).read_bytes() for path in written.paths] == [made[Path(path).name] for path in written.paths]
    assert capsys.readouterr().out == ""
    assert str(written).startswith(f"documents      {written.documents}, with ")


WHOLE = {"num_shards": None}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"input_file": None}, "--input_file is required"),
        ({"output_file": None}, "--output_file is required"),
        ({"vocab_file": None}, "--vocab_file is required"),
        ({"input_file": "/nowhere/x.txt"}, "/nowhere/x.txt: cannot read the file: No such file"),
        ({"output_file": "/dev/null"}, "--output_file=/dev/null: name a file"),
        ({"output_file": "a,a"}, "--output_file=a,a: a name is empty, or appears twice"),
        ({"output_file": "a,b", "num_shards": 3}, "--num_shards=3: --output_file names 2 files"),
        ({"num_shards": 9999}, "9,999 shards for"),
        ({"language": "english"}, "--language=english: expected a code of ISO 639"),
        ({"do_lower_case": False}, "--do_lower_case=false"),
        ({"output_file": "text.txt", **WHOLE}, "text.txt: is both input and output"),
        ({"output_file": "vocab.txt", **WHOLE}, "vocab.txt: is both input and output"),
        ({"output_file": "x,x.json", **WHOLE}, "x.json would be written twice"),
        ({"output_file": "x,./x", **WHOLE}, "/x would be written twice"),
        ({"output_file": "mine", **WHOLE}, "mine.json: exists, and is no list of shards, which would replace it"),
        ({"output_file": "notes.txt", **WHOLE}, "notes.txt: exists, and is no shard, which would replace it; name another"),
        ({"output_file": "x,notes.txt", **WHOLE}, "notes.txt: exists, and is no shard"),
        ({"output_file": "../run/events.out.tfevents.1", **WHOLE}, "tfevents.1: is a file of the run there; name another"),
        ({"input_format": "book"}, "pip install 'sentencex"),
    ],
)
def test_what_cannot_be_used_is_one_line(source, tmp_path, monkeypatch, capsys, flags, said):
    monkeypatch.chdir(shutil.copytree(source, tmp_path / "here"))
    if flags.get("input_format") == "book":
        monkeypatch.setitem(sys.modules, "sentencex", None)
        documents.sentences._segment.cache_clear()
    Path("mine.json").write_text('{"data": []}')
    Path("notes.txt").write_text("Call the printer.\n")
    Path("../run").mkdir()
    Path("../run/run_config.json").write_text("{}")
    Path("../run/events.out.tfevents.1").write_bytes(framed(b""))  # it begins as a shard does
    before = contents(Path()), contents(Path("../run"))
    assert classifier.pretraining_data(arguments(Path(), **{"output_file": "out", **flags})) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert said in error
    assert (contents(Path()), contents(Path("../run"))) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a b\nc\nd e\n", "all text is one document"),
        ("a b c d e f g\n" * 30, "lines look hard-wrapped"),
        ("你好 世界\n世界\n\na b\n", "% of the pieces are [UNK]"),
        ("a b\n" * 20 + "\n世界\n", ""),
        ("a b\n\n" * 40, "hardly any text of a pair follows the other: documents have few sentences; add --nsp=false"),
    ],
)
def test_doubtful_text_and_few_places_for_masks_are_warned_of(text, said, source, tmp_path, caplog):
    (tmp_path / "x.txt").write_text(text, encoding="utf-8")
    flags = {"input_file": tmp_path / "x.txt", "num_shards": 1, "max_predictions_per_seq": 2}
    assert classifier.pretraining_data(arguments(source, tmp_path / "out", **flags)) == 0
    assert said in caplog.text
    assert ("[UNK]" in caplog.text) == ("[UNK]" in said)
    assert "--max_predictions_per_seq=2 is less than --masked_lm_prob=0.15 of 32 tokens" in caplog.text
