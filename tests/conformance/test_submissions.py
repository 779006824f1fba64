"""The files for GLUE's server, for every task: names, header, indices, spelling of labels."""

import re

import numpy as np
import pytest

from bert_tf.tasks.base import TEST
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.training import results

_BINARY, _ENTAILMENT = {"0", "1"}, {"entailment", "not_entailment"}
_NLI = {"entailment", "neutral", "contradiction"}
# What the server's instructions and its sample submission say; a number for STS-B.
SERVER = {"AX": _NLI, "CoLA": _BINARY, "MNLI-m": _NLI, "MNLI-mm": _NLI, "MRPC": _BINARY, "QNLI": _ENTAILMENT}
SERVER |= {"QQP": _BINARY, "RTE": _ENTAILMENT, "SST-2": _BINARY, "STS-B": None, "WNLI": _BINARY}
SPLITS = [(task, split) for task in TASKS.values() for split in task.split_names[TEST]]
EXAMPLES = [SentenceExample(f"test-{number}", "a") for number in range(1, 31)]


def test_every_file_that_the_server_wants_is_of_one_split():
    assert sorted(task.submission(split).name for task, split in SPLITS) == sorted(SERVER)


@pytest.mark.parametrize(("task", "split"), SPLITS, ids=[f"{task.name}-{split}" for task, split in SPLITS])
def test_a_file_is_as_the_server_wants_it(task, split, tmp_path):
    logits = np.random.default_rng(0).normal(0, 4, [len(EXAMPLES), task.family.head.num_labels]).astype(np.float32)
    results.write_predictions(tmp_path, task, split, EXAMPLES, logits)
    (path,) = (tmp_path / "submission").iterdir()
    *lines, end = path.read_text(encoding="utf-8").split("\n")
    header, *rows = (line.split("\t") for line in lines)
    assert (header, end) == (["index", "prediction"], "")
    assert [row[0] for row in rows] == [str(index) for index in range(len(EXAMPLES))]
    predictions, allowed = [prediction for _, prediction in rows], SERVER[path.stem]
    if allowed is None:
        assert [float(number) for number in predictions] == pytest.approx(logits[:, 0].clip(0, 5), abs=5e-4)
        assert all(re.fullmatch(r"[0-4]\.\d{3}|5\.000", number) for number in predictions)
    else:
        assert set(predictions) == allowed
        assert predictions == [task.family.labels[number] for number in logits.argmax(axis=1)]
