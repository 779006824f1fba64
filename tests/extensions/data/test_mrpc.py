"""The splits of MRPC, from small files in the layout of its corpus, and files that do not fit it."""

import pytest

from bert_tf.errors import DataError
from bert_tf.extensions.data import mrpc
from bert_tf.tasks.glue import TASKS
from tests.tasks.refusals import refusal

MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
MRPC_TRAIN = (MRPC_HEADER, '1\t10\t11\tIt " rains .\tRain .', "0\t12\t13\tOne .\tTwo .", "1\t14\t15\tThree .\tDrei .")
MRPC_TEST = (MRPC_HEADER, "1\t20\t21\tFour .\tVier .", "0\t22\t23\tFive .\tSix .")


def corpus(folder, train=MRPC_TRAIN, test=MRPC_TEST, ids=("12\t13",), end="\n"):
    """Writes the corpus; returns the paths of its files."""
    paths = []
    for name, start, lines in (("train", "\ufeff", train), ("test", "\ufeff", test), ("ids", "", ids)):
        paths.append(folder / f"{name}.txt")
        paths[-1].write_bytes((start + "".join(f"{line}{end}" for line in lines)).encode())
    return paths


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_pairs_of_the_list_are_dev_and_test_is_numbered(tmp_path, end):
    assert mrpc.split(*corpus(tmp_path, end=end)) == {
        "train.tsv": f"\ufeff{MRPC_HEADER}\n{MRPC_TRAIN[1]}\n{MRPC_TRAIN[3]}\n",
        "dev.tsv": f"\ufeff{MRPC_HEADER}\n{MRPC_TRAIN[2]}\n",
        "test.tsv": "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t20\t21\tFour .\tVier .\n1\t22\t23\tFive .\tSix .\n",
    }

    dev = mrpc.split(*corpus(tmp_path, ids=("14\t15", "10\t11")))["dev.tsv"]
    assert [line.split("\t")[1] for line in dev.splitlines()[1:]] == ["10", "14"]  # in the order of the corpus
    for name, text in mrpc.split(*corpus(tmp_path)).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert [len(TASKS["MRPC"].examples(tmp_path, name)) for name in ("train", "dev", "test")] == [2, 1, 2]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"ids": ("12\t13", "98\t99", "97\t96")}, "{2}:2: {0} lacks 2 of these pairs, the first is 98 and 99"),
        ({"test": (*MRPC_TEST, "1\t2\t3")}, "{1}:4: 3 cells, expected 5; cells are separated by tabs"),
        (None, "{2}: cannot read the file: No such file or directory"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, changes, problem):
    paths = corpus(tmp_path, **(changes or {}))
    if changes is None:
        paths[2].unlink()
    assert refusal(DataError, mrpc.split, *paths) == problem.format(*paths)
