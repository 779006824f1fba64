"""Corrections: training rows to leave out, or with other labels, as an audit or a person says (docs/tasks.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.extension import Extension, Settings
from bert_tf.io import files
from bert_tf.settings import training_setting

_OF_ROWS: Mapping[str, Any] = {"path": True, "refuse_missing": files.refuse_missing, "of_labels": True, "of_rows": True}


@dataclasses.dataclass(frozen=True)
class CorrectionSettings(Settings):
    exclude_rows: str | None = training_setting(
        None, "training rows to leave out: audit.csv of `data audit` as edited, or a file of ids, one per line", **_OF_ROWS
    )
    relabel: str | None = training_setting(
        None, "other labels of training rows: audit.csv as edited, or lines of id,label", **_OF_ROWS
    )


EXTENSION = Extension(settings=CorrectionSettings, section="Task and data", part=f"{__name__}.rows:Corrections")
