"""SWAG, and custom multiple choice data."""

from __future__ import annotations

import functools

from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.choice.family import ChoiceFamily
from bert_tf.tasks.choice.reading import read
from bert_tf.tasks.custom import NAME as CUSTOM
from bert_tf.tasks.custom import CustomSettings
from bert_tf.tasks.file_task import FileTask

SWAG = "SWAG"
SETTINGS = frozenset(("problem", "label_column", "id_column", "file_format"))  # that one's own questions take besides files

_PATTERNS = {TRAIN: ("train.csv",), DEV: ("val.csv", "dev.csv"), TEST: ("test.csv",)}


def swag(settings: CustomSettings) -> FileTask:
    """SWAG (Zellers et al., 2018) in its published columns."""
    return FileTask(SWAG, ChoiceFamily, functools.partial(read, settings), settings, _PATTERNS)


def own(settings: CustomSettings) -> FileTask:
    return FileTask(CUSTOM, ChoiceFamily, functools.partial(read, settings), settings, {})
