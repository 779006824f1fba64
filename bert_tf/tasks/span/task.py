"""SQuAD 1.1 and 2.0, and custom questions."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.custom import NAME as CUSTOM
from bert_tf.tasks.file_task import FileTask
from bert_tf.tasks.span.family import SpanFamily
from bert_tf.tasks.span.reader import Reader

if TYPE_CHECKING:
    from bert_tf.tasks.settings import TaskSettings

SQUAD, SQUAD2 = "SQuAD", "SQuAD2"

_VERSIONS = {SQUAD: 1, SQUAD2: 2}


def squad(settings: TaskSettings) -> FileTask:
    """SQuAD 1.1; 2.0 if the published flag allows questions without an answer."""
    return _task(SQUAD, settings)


def squad2(settings: TaskSettings) -> FileTask:
    span = dataclasses.replace(settings.span, version_2_with_negative=True)
    return _task(SQUAD2, dataclasses.replace(settings, span=span))


def own(settings: TaskSettings) -> FileTask:
    return _task(CUSTOM, settings)


def _task(name: str, settings: TaskSettings) -> FileTask:
    custom, span = settings.custom, settings.span
    reader = Reader(span.version_2_with_negative, custom.file_format, custom.id_column)
    files = dataclasses.replace(
        custom, dev_file=custom.dev_file or span.predict_file, test_file=custom.test_file or span.predict_file
    )
    return FileTask(name, functools.partial(SpanFamily.from_settings, span), reader, files, _patterns(name))


def _patterns(name: str) -> Mapping[str, Sequence[str]]:
    """Returns the file names by split; as published, dev is predicted if there is no test file."""
    if name not in _VERSIONS:
        return {}
    of = {split: (f"{split}-v{_VERSIONS[name]}*.json", f"{split}-v*.json") for split in (TRAIN, DEV, TEST)}
    return {**of, TEST: (*of[TEST], *of[DEV])}
