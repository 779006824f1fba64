"""Report: the HTML page of one run, or of several side by side."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import os
from pathlib import Path

from bert_tf.errors import OutputError
from bert_tf.io import atomic, lock
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.run_layout import PAGE
from bert_tf.settings import read, setting

_HEIGHT = 600  # pixels of a notebook


@dataclasses.dataclass(frozen=True)
class ReportSettings:
    folders: tuple[str, ...] = setting(None, "output folder of one or several runs", positional=True, required=True)
    output: str | None = setting(None, "file to write; default: DIR/report.html, or ./report.html for several DIRs")
    redact: bool = setting(
        False, "first shorten absolute paths in run_config.json to file names, to share DIR; this cannot be undone"
    )


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
    return write(read(ReportSettings, {"folders": folders or None, "output": output, "redact": redact}))


def write(settings: ReportSettings) -> Page:
    """Writes the page of runs; `redact` first removes folders from absolute paths in each run_config.json."""
    from bert_tf.estimator import run_folder
    from bert_tf.report import page, run_files

    folders = [Path(folder) for folder in settings.folders]
    output = Path(settings.output or (folders[0] / PAGE if len(folders) == 1 else PAGE))
    runs = run_files.read(folders)
    if settings.redact:
        for run in runs:
            with lock.writing_folder(run.folder, instead="wait until its training has ended"):
                short = run_files.without_folders(run.recorded_command, keep=1)
                run_folder.add_to_record(run.folder, {"command": short} if run.record else {})
        runs = run_files.read(folders)
    into_run = output.parent.resolve() in {folder.resolve() for folder in folders}
    elsewhere = "write the page elsewhere with --output=FILE"
    try:
        with lock.writing_folder(output.parent, instead=elsewhere) if into_run else contextlib.nullcontext():
            page.write(output, runs)
    except ImportError as error:
        raise OutputError(f"{output}: not made: {error}; pip install jinja2 vl-convert-python") from error
    return Page(output)


def _print(call: Call) -> None:
    path = write(call.settings).path
    if not atomic.is_written_into(path):  # the page alone is to be read there
        print(path)


COMMAND = Command(
    "Writes the HTML report of a run, or of several side by side: python -m bert_tf report DIR [DIR ...]\n"
    "A DIR is the --output_dir of a training; that of --seeds is one line, the mean in a band; DIR/seed-* are a line each.\n"
    "While it trains, add --output=FILE.",
    ReportSettings,
    _print,
    stopped="stopped; no page was written",
    log=False,
)
