"""The HTML report of one or several runs, as a call."""

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
    """A written report, displayed by notebooks.

    Attributes:
      path: of the self-contained file.
    """

    path: Path

    def _repr_html_(self) -> str:
        contents = html.escape(self.path.read_text(encoding="utf-8"))
        return f'<iframe srcdoc="{contents}" width="100%" height="{_HEIGHT}" style="border: 0"></iframe>'


@takes()
def write_report(*folders: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, redact: bool = False) -> Page:
    """Writes the report of a run, or of several side by side; as `python -m bert_tf report`.

    Args:
      *folders: output folders of the runs.
      output: file to write; by default report.html in the folder, for several in the current one.
      redact: first cuts absolute paths in the runs' `run_config.json` to file names, irreversibly.

    Raises:
      BertError: a folder holds no run, or the file cannot be written.
    """
    paths = [Path(folder) for folder in folders]
    target = job.target(paths, None if output is None else os.fspath(output))
    job.write(paths, target, redact=redact)
    return Page(target)
