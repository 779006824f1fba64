"""Files that no family can read: one line that names the file, and the row where there are rows."""

from __future__ import annotations

import gzip
import json

import pytest

from bert_tf.errors import BertError
from bert_tf.tasks import registry
from bert_tf.tasks.settings import of_values

_QUESTION = {"id": "1", "question": "who?", "context": "Ann left Rome.", "answer": "Ann", "start": 0}
_OPTIONS = {"context": "It rains.", "question": "", "options": ["we stay", "we swim"], "answer": 0}
_SQUAD = {
    "title": "t",
    "paragraphs": [
        {"context": "Ann left.", "qas": [{"id": "1", "question": "who?", "answers": [{"text": "Ann", "answer_start": 0}]}]}
    ],
}
# One row that can be read, by problem and suffix.
GOOD = {
    ("span", ".json"): json.dumps({"data": [_SQUAD]}),
    ("span", ".jsonl"): json.dumps(_QUESTION) + "\n",
    ("span", ".csv"): "question,context,answer\nwho?,Ann left.,Ann\n",
    ("tags", ".conll"): "Ann B-PER\nleft O\n",
    ("tags", ".jsonl"): json.dumps({"tokens": ["Ann", "left"], "tags": ["B-PER", "O"]}) + "\n",
    ("choice", ".csv"): "sent1,sent2,ending0,ending1,label\nIt rains.,We,stay,swim,0\n",
    ("choice", ".jsonl"): json.dumps(_OPTIONS) + "\n",
    ("similarity", ".tsv"): "text_a\ttext_b\tlabel\none\ttwo\t0.5\n",
    ("contrastive", ".csv"): "text_a,text_b\none,two\n",
}
CODECS = {
    "good": lambda good: good,
    "empty": lambda _: b"",
    "blank": lambda _: b"\n \n",
    "compressed under another name": gzip.compress,
    "Latin-1": lambda good: good + good.replace(b"e", b"\xe9"),
    "a picture": lambda _: b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
}


def read(problem, path, content):
    path.write_bytes(content)
    files = {f"{split}_file": str(path) for split in ("train", "dev")}
    task = registry.get_task("custom", of_values({"problem": problem, **files}))
    assert task.family
    return task.examples("", "dev")


@pytest.mark.parametrize("how", CODECS)
@pytest.mark.parametrize(("problem", "suffix"), GOOD)
def test_a_bad_file_is_one_line(problem, suffix, how, tmp_path):
    path, content = tmp_path / f"dev{suffix}", CODECS[how](GOOD[problem, suffix].encode())
    if how == "good":
        assert len(read(problem, path, content)) == 1
        return
    with pytest.raises(BertError) as caught:
        read(problem, path, content)
    said = str(caught.value)
    assert all(line.startswith(f"{path}:") for line in said.splitlines())
    assert said.count("\n") == (2 if said.endswith("2 rows cannot be used") else 0)
    if how in ("empty", "blank"):
        assert said == f"{path}: the file is empty"
    if how.startswith("compressed"):
        assert said.endswith("the file is compressed; add .gz to its name")


@pytest.mark.parametrize(("problem", "suffix"), GOOD)
def test_a_cut_archive_is_one_line(problem, suffix, tmp_path):
    path = tmp_path / f"dev{suffix}.gz"
    with pytest.raises(BertError, match="cannot read the file: Compressed file ended") as caught:
        read(problem, path, gzip.compress(GOOD[problem, suffix].encode())[:-9])
    assert str(caught.value).startswith(f"{path}: ")
