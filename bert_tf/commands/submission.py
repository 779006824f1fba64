"""Predictions in the layout that GLUE's server takes: index and prediction, in the order of the test file."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

from bert_tf import atomic
from bert_tf.errors import DataError, FlagError
from bert_tf.tasks import scores
from bert_tf.tasks.base import REGRESSION, Task
from bert_tf.tasks.glue import SIMILARITIES

FOLDER = "submission"

_HEADER = "index\tprediction"
_SIMILARITY = re.compile(r"[0-4]\.\d{3}|5\.000")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file knows; the same predictions make the same bytes


def lines(task: Task, logits: scores.Logits) -> list[str]:
    """Returns the lines of a file.

    Args:
      task: whose label names are spelled as the server wants them.
      logits: [E, L], in the order of the test file.
    """
    predicted = scores.predictions(task.head.kind, logits)
    if task.head.kind == REGRESSION:
        predictions = [f"{abs(number):.3f}" for number in predicted.clip(*SIMILARITIES)]  # abs: -0.0
    else:
        predictions = [str(label) for label in scores.decode(task.head.kind, predicted, task.labels)]
    return [_HEADER, *(f"{index}\t{prediction}" for index, prediction in enumerate(predictions))]


def check_submission(path: str | os.PathLike[str], task: Task, rows: int) -> None:
    """Checks header, indices and predictions of a file.

    Args:
      path: the file.
      task: whose labels are allowed.
      rows: how many test examples there are.

    Raises:
      DataError: something is not as the server wants it; names the line.
    """
    found = Path(path).read_text(encoding="utf-8").split("\n")
    if found[0] != _HEADER:
        raise DataError(f"the header line is not {_HEADER!r}", path, 1)
    if len(found) != rows + 2 or found[-1]:
        raise DataError(f"{len(found) - 2} whole lines below the header line, expected {rows}", path)
    for index, line in enumerate(found[1:-1]):
        number, _, prediction = line.partition("\t")
        if number != str(index):
            raise DataError(f"index {number!r}, expected {index}", path, index + 2)
        if task.head.kind == REGRESSION:
            if not _SIMILARITY.fullmatch(prediction):
                raise DataError(f"{prediction!r} is no number of three decimals from 0 to 5", path, index + 2)
        elif prediction not in task.labels:
            raise DataError(f"{prediction!r} is none of {', '.join(task.labels)}", path, index + 2)


def zip_submissions(output_dir: str | os.PathLike[str]) -> Path:
    """Packs the files of the folder `submission` into submission.zip beside it, without folders, as the server wants them.

    Raises:
      FlagError: there are none.
      OutputError: the file cannot be written.
    """
    files = sorted(Path(output_dir, FOLDER).glob("*.tsv"))
    if not files:
        raise FlagError(f"--submission_zip: {output_dir} holds no predictions of a task of GLUE")
    target = Path(output_dir, FOLDER).with_suffix(".zip")
    with atomic.replacing(target) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for file in files:
            archive.writestr(zipfile.ZipInfo(file.name, _EPOCH), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return target
