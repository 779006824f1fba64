"""The code on the pages of the documentation runs as it stands, from top to bottom, with a tiny default checkpoint."""

from __future__ import annotations

import collections
import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf import home
from bert_tf.checkpoints import converted_files, default
from tests import page_blocks, pretrained

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "bert_tf" / "sample"
CLONE = ("benchmarks", "bert_tf", "data", "docs", "requirements.txt", "requirements-base.txt", "run_classifier.py")
DATA = {"glue/MRPC": "MRPC", "glue/STS-B": "STS-B-vectors", "squad": "SQuAD", "swag": "SWAG", "conll": "CoNLL2003"}
STEPS = "--num_train_steps=6"
RUNS = {
    "out/mrpc": "run_classifier.py --task_name=MRPC",
    "out/squad": "run_classifier.py --task_name=SQuAD",
    "out/conll2003": "run_classifier.py --task_name=CoNLL2003",
    "out/pretraining": "-m bert_tf pretrain",
}
PASSAGE = {"context": "Ada built the mill in 1871.", "question": "Who built the mill?", "answer": "Ada", "start": 0}
QUESTION = {"context": "It rained all night.", "question": "The street", "options": ["was wet.", "sang."], "answer": 0}
PAIR = {"text_a": "He left.", "text_b": "He went away.", "label": 4}
LINES = {
    "lines": "It rained all night.\nThe street was wet.\n" * 4,
    "masks": "It rained all [MASK].\n" * 4,
    "words": "mill\nstorm\n",
    "sweep": "tasks: [MRPC]\nsettings: {num_train_steps: 6, learning_rate: [2e-5, 5e-5]}\n",
}
ROWS = {  # what a suffix and a part of a name cannot say: the rows of files that a reader would have
    "choice": [QUESTION] * 40,
    "span": [PASSAGE] * 40,
    "pairs": [PAIR, {**PAIR, "label": 1}] * 20,
    "documents": [{"text": "Rain all day.\nSalt the soup."}] * 40,
    "texts": [{"id": "1", "title": "The storm", "body": "Rain all day."}, {"id": "2", "title": "Soup", "body": "Salt it."}],
}


def reasons(page: Path) -> collections.Counter[str]:
    return collections.Counter(block.left_out for block in page_blocks.blocks(page))


@pytest.fixture(scope="session")
def machine(tmp_path_factory):
    """A folder with `home` (checkpoints, native kernels), `bin` (python, pip), and models and data as people have them."""
    folder = tmp_path_factory.mktemp("machine")
    base = folder / "uncased_L-12_H-768_A-12"
    write_model(base)
    write_model(folder / "home" / "checkpoints" / default.NAME)
    converted_files.write_sums(folder / "home" / "checkpoints" / default.NAME)
    if home.compiled({}).is_dir():
        shutil.copytree(home.compiled({}), folder / "home" / "native")
    (folder / "glue").mkdir()
    for name, task in DATA.items():
        (folder / name).symlink_to(SAMPLE / task)
    (folder / "bin").mkdir()
    for name, line in {"python": f'exec "{sys.executable}" "$@"', "pip": "true  # all packages are there"}.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / "bin" / name).chmod(0o755)
    return folder


def write_model(folder: Path) -> None:
    """Writes a model with all of its heads, whose vocabulary are the characters of English."""
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    unused = [f"[unused{number}]" for number in range(99)]
    tokens = ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    pretrained.write(folder, tokens=tokens, sizes={"num_hidden_layers": 4, "max_position_embeddings": 512})


def environment(machine: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("BERT_BASE_DIR", "GLUE_DIR")}
    path = os.pathsep.join((str(machine / "bin"), os.environ["PATH"]))
    return {**kept, "PATH": path, "PYTHONPATH": str(ROOT), home.VARIABLE: str(machine / "home"), "CUDA_VISIBLE_DEVICES": "-1"}


@pytest.fixture(scope="session")
def made(machine):
    """Returns a function that makes, once, the run that pages take for granted."""

    def make(name: str) -> Path:
        if not (machine / name).is_dir():
            command = [sys.executable, *RUNS[name].split(), STEPS, f"--output_dir={machine / name}"]
            done = subprocess.run(command, cwd=ROOT, env=environment(machine), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        return machine / name

    return make


def give(source: str, place: Path, machine: Path, made) -> None:
    """Makes one of the things that a page takes for granted: a run, a file of the sample, or rows in the form of the suffix."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if source in RUNS:
        shutil.copytree(made(source), place)
    elif source in LINES:
        place.write_text(LINES[source])
    elif source == "vocab.txt":
        shutil.copy(machine / "uncased_L-12_H-768_A-12" / source, place)
    elif source in ROWS:
        write_rows(ROWS[source], place)
    else:
        shutil.copy(SAMPLE / source, place)


def write_rows(rows, path: Path) -> None:
    if ".jsonl" in path.suffixes:
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter="\t" if path.suffix == ".tsv" else ",", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize("name", page_blocks.PAGES)
def test_a_block_is_python_or_shell_unless_it_is_marked(name):
    """So that an output without a mark is noticed without running the page."""
    for block in page_blocks.blocks(page_blocks.PAGES[name]):
        if not block.left_out and not block.is_python:
            done = subprocess.run(["bash", "-n", "-c", block.text], capture_output=True, text=True, check=False)
            assert done.returncode == 0, (block.line, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, page in page_blocks.PAGES.items() if reasons(page)[""]])
def test_the_blocks_of_a_page_run(name, machine, made, tmp_path, capsys):
    page = page_blocks.PAGES[name]
    for entry in CLONE:
        (tmp_path / entry).symlink_to(ROOT / entry)
    (tmp_path / "uncased_L-12_H-768_A-12").symlink_to(machine / "uncased_L-12_H-768_A-12")
    for thing in page_blocks.given(page):
        file, _, source = thing.partition("=")
        give(source or file, tmp_path / file, machine, made)
    command = [sys.executable, "-m", "tests.page_blocks", str(page), str(machine)]
    done = subprocess.run(command, cwd=tmp_path, env=environment(machine), capture_output=True, text=True, check=False)
    counts = reasons(page)
    with capsys.disabled():
        left_out = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()) if reason)
        print(f"\n{name}: {counts['']} blocks ran; left out: {left_out or 'none'}")  # noqa: T201
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
