"""The files for GLUE's server, for every task: names, header, indices, spelling of labels."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.tasks.base import TEST
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.training import results
from tests.submission_layout import problems

_BINARY, _ENTAILMENT = {"0", "1"}, {"entailment", "not_entailment"}
_NLI = {"entailment", "neutral", "contradiction"}
# What the server's instructions and its sample submission say; a number for STS-B.
SERVER = {
    "AX": _NLI,
    "CoLA": _BINARY,
    "MNLI-m": _NLI,
    "MNLI-mm": _NLI,
    "MRPC": _BINARY,
    "QNLI": _ENTAILMENT,
    "QQP": _BINARY,
    "RTE": _ENTAILMENT,
    "SST-2": _BINARY,
    "STS-B": None,
    "WNLI": _BINARY,
}
SPLITS = [(task, split) for task in TASKS.values() for split in task.split_names[TEST]]
EXAMPLES = [SentenceExample(f"test-{number}", "a") for number in range(1, 31)]


def test_every_file_that_the_server_wants_is_of_one_split():
    assert sorted(task.submission(split).name for task, split in SPLITS) == sorted(SERVER)


@pytest.mark.parametrize(("task", "split"), SPLITS, ids=[f"{task.name}-{split}" for task, split in SPLITS])
def test_a_file_is_as_the_server_wants_it(task, split, tmp_path):
    logits = np.random.default_rng(0).normal(0, 4, [len(EXAMPLES), task.family.head.num_labels]).astype(np.float32)
    results.write_predictions(tmp_path, task, split, EXAMPLES, logits)
    (path,) = (tmp_path / "submission").iterdir()
    assert problems(path, task, len(EXAMPLES)) == []
    header, *rows = (line.split("\t") for line in path.read_text().splitlines())
    assert header == ["index", "prediction"]
    assert [row[0] for row in rows] == [str(index) for index in range(len(EXAMPLES))]
    predictions, allowed = [row[1] for row in rows], SERVER[path.stem]
    if allowed is None:
        assert [float(number) for number in predictions] == pytest.approx(logits[:, 0].clip(0, 5), abs=5e-4)
    else:
        assert set(predictions) == allowed
        assert predictions == [task.family.labels[number] for number in logits.argmax(axis=1)]


@pytest.mark.parametrize(
    ("name", "lines", "expected"),
    [
        ("RTE", ["prediction\tindex", "0\tentailment", "1\tentailment"], ["the header line is 'prediction\\tindex'"]),
        ("RTE", ["index\tprediction", "0\tentailment"], ["1 whole lines below the header line, expected 2"]),
        ("RTE", ["index\tprediction", "0\tentailment", "2\t1"], ["line 3: index '2'", "line 3: prediction '1'"]),
        (
            "STS-B",
            ["index\tprediction", "0\t5.001", "1\t-0.500"],
            ["line 2: prediction '5.001'", "line 3: prediction '-0.500'"],
        ),
        ("STS-B", ["index\tprediction", "0\t2.5", "1\tnan"], ["line 2: prediction '2.5'", "line 3: prediction 'nan'"]),
    ],
)
def test_the_check_of_the_layout_can_fail(name, lines, expected, tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("".join(f"{line}\n" for line in lines))
    assert problems(path, TASKS[name], 2) == expected
