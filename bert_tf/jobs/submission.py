"""Packs predictions for GLUE's server into one file."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from bert_tf import atomic, run_layout
from bert_tf.errors import FlagError

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file knows; the same predictions make the same bytes


def zip_submissions(output_dir: str | os.PathLike[str]) -> Path:
    """Packs the files of `submission` into submission.zip beside it, without folders, as the server requires."""
    files = sorted(Path(output_dir, run_layout.SUBMISSION).glob("*.tsv"))
    if not files:
        raise FlagError(f"--submission_zip: {output_dir} holds no predictions of a task of GLUE")
    target = Path(output_dir, run_layout.SUBMISSION_ZIP)
    with atomic.replacing(target) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for file in files:
            archive.writestr(zipfile.ZipInfo(file.name, _EPOCH), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return target
