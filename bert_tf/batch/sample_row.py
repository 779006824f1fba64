"""A row of the data of a run, to show what its model reads."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.batch.trained import Trained
from bert_tf.errors import BertError
from bert_tf.estimator import run_folder
from bert_tf.head_spec import PRETRAINING
from bert_tf.kinds import Registry
from bert_tf.tasks.base import DEV, TRAIN
from bert_tf.tasks.rows_task import RowsTask

_ROWS = Registry[Callable[[Any], dict[str, Any]]]("row")  # of an example, by kind; else its texts
_LARGEST = 1 << 26  # bytes of a file: some formats are read whole
_READ = 50  # rows to choose from
_FEW, _MANY = 20, 400  # characters of a row that shows well


def sample_row(model: Trained) -> dict[str, Any] | None:
    """A row of dev, else of train, as `Model.predict` takes it; None if the files of the run are gone."""
    kind = model.record.get("kind")
    if kind == PRETRAINING:
        return None
    with contextlib.suppress(BertError, OSError):
        examples = list(itertools.islice(_examples(model), _READ))
        shown = [example for example in examples if _FEW <= _size(example) <= _MANY] or sorted(examples, key=_size)
        return next((_ROWS.get(str(kind), _texts)(example) for example in shown), None)
    return None


def _examples(model: Trained) -> Iterator[Any]:
    """Examples of the first split with a file."""
    task = model.task
    folder = run_layout.recorded_flags(run_folder.load_record(model.folder) or {}).get("data_dir")
    if isinstance(task, RowsTask) or (task.reads_folder and folder is None):
        return
    for purpose in (DEV, TRAIN):
        with contextlib.suppress(BertError):  # there is no such file
            split = task.splits(folder or "", purpose)[0]
            path = Path(task.file(folder or "", split))
            if path.is_file() and path.stat().st_size <= _LARGEST:
                yield from task.stream(str(path), split, lambda _: None)  # leaves bad rows out
                return


def _texts(example: Any) -> dict[str, Any]:
    return dict(zip(("text_a", "text_b"), example.texts)) if len(example.texts) > 1 else {"text": example.texts[0]}


def _size(example: Any) -> int:
    return sum(map(len, example.texts))
