"""What `import bert_tf` offers; `__init__.py` reads this file, and imports a name when it is first used."""

import os
from collections.abc import Iterable
from typing import Any, overload

from bert_tf.errors import BertError as BertError
from bert_tf.extensions.audit.command import audit_data as audit_data
from bert_tf.extensions.average.command import average_checkpoints as average_checkpoints
from bert_tf.extensions.calibrate.command import calibrate as calibrate
from bert_tf.extensions.calibrate.fit import Calibrated as Calibrated
from bert_tf.extensions.calibrate.fit import Checked as Checked
from bert_tf.extensions.card.command import write_card as write_card
from bert_tf.extensions.checkpoint.diff import diff_checkpoints as diff_checkpoints
from bert_tf.extensions.checkpoint.inspect import inspect_checkpoint as inspect_checkpoint
from bert_tf.extensions.checkpoint.rewrite import convert_checkpoint as convert_checkpoint
from bert_tf.extensions.checkpoint.rewrite import rename_checkpoint as rename_checkpoint
from bert_tf.extensions.checkpoint.rewrite import strip_checkpoint as strip_checkpoint
from bert_tf.extensions.choice.family import ChoiceTask as ChoiceTask
from bert_tf.extensions.cluster.frames import evaluate_frame as evaluate_frame
from bert_tf.extensions.cluster.frames import predict_frame as predict_frame
from bert_tf.extensions.data.check import check_data as check_data
from bert_tf.extensions.data.fetch import fetch_data as fetch_data
from bert_tf.extensions.devices.command import devices as devices
from bert_tf.extensions.distill.command import distill as distill
from bert_tf.extensions.evaluate.command import Table as Table
from bert_tf.extensions.evaluate.command import evaluate as evaluate
from bert_tf.extensions.explain.command import explain as explain
from bert_tf.extensions.explain.explanation import Explanation as Explanation
from bert_tf.extensions.fill_mask.command import fill_mask as fill_mask
from bert_tf.extensions.fill_mask.command import word_filler as word_filler
from bert_tf.extensions.fill_mask.filler import WordFiller as WordFiller
from bert_tf.extensions.memory_plan.command import memory_plan as memory_plan
from bert_tf.extensions.memory_trace.command import memory_diff as memory_diff
from bert_tf.extensions.memory_trace.command import memory_peak as memory_peak
from bert_tf.extensions.memory_trace.command import memory_report as memory_report
from bert_tf.extensions.pretrain.command import pretrain as pretrain
from bert_tf.extensions.pretrain.data_command import make_pretraining_data as make_pretraining_data
from bert_tf.extensions.profile.command import profile as profile
from bert_tf.extensions.report.command import Page as Page
from bert_tf.extensions.report.command import write_report as write_report
from bert_tf.extensions.reproduce.command import Reproduction as Reproduction
from bert_tf.extensions.reproduce.command import reproduce as reproduce
from bert_tf.extensions.scikit_learn.estimators import BertClassifier as BertClassifier
from bert_tf.extensions.scikit_learn.estimators import BertRegressor as BertRegressor
from bert_tf.extensions.series.runs import FoldRuns as FoldRuns
from bert_tf.extensions.series.runs import SeedRuns as SeedRuns
from bert_tf.extensions.serve.command import serve as serve
from bert_tf.extensions.similarity.family import ContrastiveTask as ContrastiveTask
from bert_tf.extensions.similarity.family import SimilarityTask as SimilarityTask
from bert_tf.extensions.span.family import SpanTask as SpanTask
from bert_tf.extensions.sweep.command import Sweep as Sweep
from bert_tf.extensions.sweep.command import sweep as sweep
from bert_tf.extensions.tags.family import TagTask as TagTask
from bert_tf.extensions.track.command import track as track
from bert_tf.extensions.vectors.encode import encode_file as encode_file
from bert_tf.extensions.vectors.encode import encoder as encoder
from bert_tf.extensions.vectors.frames import encode_frame as encode_frame
from bert_tf.extensions.vectors.search import search as search
from bert_tf.extensions.vectors.text_encoder import Encoder as Encoder
from bert_tf.extensions.vocabulary.extend import extend_vocabulary as extend_vocabulary
from bert_tf.extensions.vocabulary.make import make_vocabulary as make_vocabulary
from bert_tf.extensions.vocabulary.show import show_vocabulary as show_vocabulary
from bert_tf.library.fine_tuning import fine_tune as fine_tune
from bert_tf.library.loading import load as load
from bert_tf.library.model import Model as Model
from bert_tf.library.model import Result as Result
from bert_tf.operations.predict import predict_files as predict_files
from bert_tf.tasks.base import Task as _Task
from bert_tf.tasks.in_memory import SentenceTask as SentenceTask

__version__: str

# What it returns depends on settings of an extension.
@overload  # type: ignore[no-redef]
def fine_tune(  # noqa: F811
    task: str | _Task | None = None,
    *,
    output_dir: str | os.PathLike[str] | None = None,
    seeds: None = None,
    folds: None = None,
    **settings: Any,
) -> Model: ...
@overload
def fine_tune(
    task: str | _Task | None = None,
    *,
    output_dir: str | os.PathLike[str] | None = None,
    seeds: None = None,
    folds: int,
    **settings: Any,
) -> FoldRuns: ...
@overload
def fine_tune(
    task: str | _Task | None = None,
    *,
    output_dir: str | os.PathLike[str] | None = None,
    seeds: str | Iterable[int],
    folds: None = None,
    **settings: Any,
) -> SeedRuns: ...
def _installed_tensorflow() -> tuple[str, str] | None: ...
def _platform_problem(python: tuple[int, int], tensorflow: str | None) -> str | None: ...
