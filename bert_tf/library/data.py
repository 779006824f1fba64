"""Published data sets and checks of own files, as calls."""

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
    """Downloads a task's published files to where `fine_tune` expects them; as `python -m bert_tf data fetch`.

    Args:
      task: its name; one language of XNLI fetches all.
      data_dir: receives a folder named after the task.
      source_dir: already holds the published files, nothing is downloaded; the flag is --from.
      sha256: of each published file, as a list or comma-separated.

    Returns:
      The folders that hold the files.

    Raises:
      BertError: a file is unavailable, has another checksum or cannot be written.
    """
    sums = sha256 if sha256 is None or isinstance(sha256, str) else ",".join(sha256)
    target = fetch_job.default_folder(os.environ) if data_dir is None else Path(data_dir)
    source = None if source_dir is None else Path(source_dir)
    return fetch_job.fetch(task, target, source_dir=source, sums=fetch_job.sums_of(sums))


@takes(check_job.SETTINGS)
def check_data(data_dir: str | os.PathLike[str] | None = None, **settings: Any) -> Checked:
    """Counts rows, labels, lengths and duplicates, and reports unusable rows; as `python -m bert_tf data check`.

    Args:
      data_dir: folder of a task's files; None for own files, named by `train_file` etc.
      **settings: the command's flags, by name.

    Returns:
      The findings; `problems` says why the data are unusable and is empty if they are usable.

    Raises:
      BertError: the settings contradict each other, or the folder is missing.
    """
    config = check_job.configured(data_dir, **settings)
    return check_job.check(config.task, config.data_dir, check_job.find_ruler(config.vocab_file, os.environ))
