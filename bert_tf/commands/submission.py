"""Predictions in the layout that GLUE's server takes: index and prediction, in the order of the test file."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from bert_tf import atomic
from bert_tf.errors import FlagError
from bert_tf.tasks import scores
from bert_tf.tasks.base import REGRESSION, Task
from bert_tf.tasks.glue import SIMILARITIES

FOLDER = "submission"

_HEADER = "index\tprediction"
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
