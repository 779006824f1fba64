"""The runs of sweeps on a page: their settings, best first, and charts of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bert_tf.extensions.report import panels
from bert_tf.extensions.report.panels import Panel
from bert_tf.extensions.report.run_files import Run
from bert_tf.extensions.sweep import trial_charts, trials


def of_runs(runs: Sequence[Run]) -> Panel | None:
    folders = trials.folders(runs)
    parts = [part for path in folders for part in trial_charts.sections(path, named=len(folders) > 1)]
    if not parts:
        return None
    template = Path(__file__).with_name("panel.html.j2").read_text(encoding="utf-8")
    return Panel("search", "Settings", panels.environment().from_string(template).render(parts=parts), first=True)
