"""Folds in one command: a run for each, a prediction of each row, and the final model."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import DataError, FlagError
from bert_tf.features import choices, sentences, tags
from bert_tf.fields import Field
from bert_tf.tasks.base import Limits
from bert_tf.tasks.in_memory import ChoiceTask, SimilarityTask, SpanTask, TagTask
from bert_tf.training import fine_tune, folds
from bert_tf.training.fold_task import groups_of
from tests import classifier
from tests.tiny import TOKENS, write_project
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
