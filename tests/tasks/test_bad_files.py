"""Files that no family can read: one line that names the file, and the row where there are rows."""

import gzip
import json
import re

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
# What a file holds instead, what its name ends in, and a pattern of what is said of it.
DAMAGES = {
    "empty": (lambda _: b"", "", "the file is empty"),
    "blank": (lambda _: b"\n \n", "", "the file is empty"),
    "compressed under another name": (gzip.compress, "", ".*the file is compressed; add .gz to its name"),
    "Latin-1": (lambda good: good + good.replace(b"e", b"\xe9"), "", "(?s).*"),
    "a picture": (lambda _: b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "", "(?s).*"),
    "a cut archive": (lambda good: gzip.compress(good)[:-9], ".gz", "cannot read the file: Compressed file ended.*"),
}


def read(problem, path, content):
    path.write_bytes(content)
    files = {f"{split}_file": str(path) for split in ("train", "dev")}
    task = registry.get_task("custom", of_values({"problem": problem, **files}))
    assert task.family
    return task.examples("", "dev")


@pytest.mark.parametrize(("problem", "suffix"), GOOD)
def test_a_bad_file_is_one_line(problem, suffix, tmp_path):
    good = GOOD[problem, suffix].encode()
    assert len(read(problem, tmp_path / f"good{suffix}", good)) == 1
    for damaged, end, message in DAMAGES.values():
        path = tmp_path / f"dev{suffix}{end}"
        with pytest.raises(BertError) as caught:
            read(problem, path, damaged(good))
        said = str(caught.value)
        assert all(line.startswith(f"{path}:") for line in said.splitlines())
        assert said.count("\n") == (2 if said.endswith("2 rows cannot be used") else 0)
        assert re.fullmatch(message, said.removeprefix(f"{path}: "))
