"""The page of a run, or of several side by side, as a call."""

from __future__ import annotations

import dataclasses
import html
import os
from pathlib import Path

from bert_tf.jobs import report as job
from bert_tf.library.keywords import takes

_HEIGHT = 600  # pixels of a notebook


@dataclasses.dataclass(frozen=True)
class Page:
    """A page that was written; a notebook shows it.

    Attributes:
      path: of the file, which needs no other.
    """

    path: Path

    def _repr_html_(self) -> str:
        """Returns the page in a frame."""
        contents = html.escape(self.path.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{contents}" width="100%" height="{_HEIGHT}" style="border: 0"></iframe>'


@takes()
def write_report(*folders: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, redact: bool = False) -> Page:
    """Makes the page of a run, or of several side by side; does what `python -m bert_tf report` does.

    Args:
      *folders: output folders of the runs.
      output: file to write; else report.html in the folder, of several in the current one.
      redact: whether absolute paths in `run_config.json` of the runs are first cut to their names; they are lost.

    Raises:
      BertError: a folder holds no run, or the file cannot be written.
    """
    paths = [Path(folder) for folder in folders]
    target = job.target(paths, None if output is None else os.fspath(output))
    job.write(paths, target, redact=redact)
    return Page(target)
