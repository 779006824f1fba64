"""Published data sets, and what is in one's own files, as calls."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bert_tf.jobs import check_data as check_job
from bert_tf.jobs import fetch as fetch_job
from bert_tf.jobs.check_data import Checked
from bert_tf.library.keywords import takes


@takes()
def fetch_data(
    task: str,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    source_dir: str | os.PathLike[str] | None = None,
    sha256: str | Iterable[str] | None = None,
) -> list[Path]:
    """Puts the published files of a task where `fine_tune` looks for them; as `python -m bert_tf data fetch`.

    Args:
      task: its name; one language of XNLI brings all.
      data_dir: gets a folder of the task's name.
      source_dir: has the published files already; nothing is downloaded. The flag is --from.
      sha256: of each published file, as a text with commas or a list.

    Returns:
      The folders that hold the files.

    Raises:
      BertError: a file cannot be had, has another sum, or cannot be written.
    """
    sums = sha256 if sha256 is None or isinstance(sha256, str) else ",".join(sha256)
    target = fetch_job.default_folder(os.environ) if data_dir is None else Path(data_dir)
    source = None if source_dir is None else Path(source_dir)
    return fetch_job.fetch(task, target, source_dir=source, sums=fetch_job.sums_of(sums))


@takes(check_job.SETTINGS)
def check_data(data_dir: str | os.PathLike[str] | None = None, **settings: Any) -> Checked:
    """Counts rows, labels, lengths and duplicates, and names rows that cannot be used; as `python -m bert_tf data check`.

    Args:
      data_dir: folder of a task's files; None for one's own, which `train_file` and the like name.
      **settings: those of the command, by the names of its flags.

    Returns:
      What was found; `problems` says why data cannot be used, and is empty where they can.

    Raises:
      BertError: the settings do not belong together, or there is no such folder.
    """
    config = check_job.configured(data_dir, **settings)
    return check_job.check(config.task, config.data_dir, check_job.find_ruler(config.vocab_file, os.environ))
