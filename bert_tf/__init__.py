"""BERT fine-tuning with TensorFlow Estimator.

    import bert_tf
    model = bert_tf.fine_tune("MRPC", output_dir="out/mrpc")
    model.predict([("He left.", "He went away.")])[0].label

See docs/library.md. The import checks that the package can run here; TensorFlow is imported lazily.
"""

import importlib
import sys
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bert_tf.errors import BertError
    from bert_tf.library.checkpoints import (
        average_checkpoints,
        convert_checkpoint,
        diff_checkpoints,
        inspect_checkpoint,
        rename_checkpoint,
        strip_checkpoint,
    )
    from bert_tf.library.data import check_data, fetch_data
    from bert_tf.library.encoder import Encoder, encode_file, encoder
    from bert_tf.library.evaluation import Table, evaluate
    from bert_tf.library.filling import WordFiller, fill_mask, word_filler
    from bert_tf.library.fine_tuning import fine_tune
    from bert_tf.library.frames import encode_frame, evaluate_frame, predict_frame
    from bert_tf.library.loading import load
    from bert_tf.library.machine import devices, memory_plan
    from bert_tf.library.model import Model
    from bert_tf.library.page import Page, write_report
    from bert_tf.library.prediction import predict_files
    from bert_tf.library.pretraining import pretrain
    from bert_tf.library.pretraining_data import make_pretraining_data
    from bert_tf.library.records import memory_diff, memory_peak, memory_report, profile
    from bert_tf.library.reproducing import Reproduction, reproduce
    from bert_tf.library.result import Result
    from bert_tf.library.seed_runs import SeedRuns
    from bert_tf.library.vocabularies import extend_vocabulary, make_vocabulary, show_vocabulary
    from bert_tf.operations.search import search
    from bert_tf.service.running import serve
    from bert_tf.tasks.choice.in_memory import ChoiceTask
    from bert_tf.tasks.sentence.in_memory import SentenceTask
    from bert_tf.tasks.similarity.in_memory import ContrastiveTask, SimilarityTask
    from bert_tf.tasks.span.in_memory import SpanTask
    from bert_tf.tasks.tags.in_memory import TagTask

__all__ = [
    "BertError",
    "ChoiceTask",
    "ContrastiveTask",
    "Encoder",
    "Model",
    "Page",
    "Reproduction",
    "Result",
    "SeedRuns",
    "SentenceTask",
    "SimilarityTask",
    "SpanTask",
    "Table",
    "TagTask",
    "WordFiller",
    "average_checkpoints",
    "check_data",
    "convert_checkpoint",
    "devices",
    "diff_checkpoints",
    "encode_file",
    "encode_frame",
    "encoder",
    "evaluate",
    "evaluate_frame",
    "extend_vocabulary",
    "fetch_data",
    "fill_mask",
    "fine_tune",
    "inspect_checkpoint",
    "load",
    "make_pretraining_data",
    "make_vocabulary",
    "memory_diff",
    "memory_peak",
    "memory_plan",
    "memory_report",
    "predict_files",
    "predict_frame",
    "pretrain",
    "profile",
    "rename_checkpoint",
    "reproduce",
    "search",
    "serve",
    "show_vocabulary",
    "strip_checkpoint",
    "word_filler",
    "write_report",
]

__version__ = "0.1.0"

_TENSORFLOW_PACKAGES = ("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tensorflow-intel")


def _installed_tensorflow() -> "tuple[str, str] | None":
    for package in _TENSORFLOW_PACKAGES:
        try:
            return package, metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def _platform_problem(python: "tuple[int, int]", tensorflow: "str | None") -> "str | None":
    """Returns one line on why bert_tf cannot run with these versions, or None; newer TensorFlow 2.x is accepted."""
    if not (3, 9) <= python <= (3, 13):
        return "bert_tf needs Python 3.9 to 3.13; this is Python %d.%d." % python
    if tensorflow is None:
        return "bert_tf needs TensorFlow, which is not installed. Run: pip install -r requirements.txt"
    major, _, rest = tensorflow.partition(".")
    minor = rest.partition(".")[0]
    if major != "2" or not minor.isdigit() or int(minor) < 15:
        return "bert_tf needs TensorFlow 2.15 to 2.21; %s is installed. Run: pip install -r requirements.txt" % tensorflow
    return None


_tensorflow = _installed_tensorflow()
_problem = _platform_problem(sys.version_info[:2], _tensorflow and _tensorflow[1])
if _problem:
    raise ImportError(_problem, name=__name__)

_MODULES = {
    "BertError": "errors",
    "ChoiceTask": "tasks.choice.in_memory",
    "ContrastiveTask": "tasks.similarity.in_memory",
    "Encoder": "library.encoder",
    "Model": "library.model",
    "Page": "library.page",
    "Reproduction": "library.reproducing",
    "Result": "library.result",
    "SeedRuns": "library.seed_runs",
    "SentenceTask": "tasks.sentence.in_memory",
    "SimilarityTask": "tasks.similarity.in_memory",
    "SpanTask": "tasks.span.in_memory",
    "Table": "library.evaluation",
    "TagTask": "tasks.tags.in_memory",
    "WordFiller": "library.filling",
    "average_checkpoints": "library.checkpoints",
    "check_data": "library.data",
    "convert_checkpoint": "library.checkpoints",
    "devices": "library.machine",
    "diff_checkpoints": "library.checkpoints",
    "encode_file": "library.encoder",
    "encode_frame": "library.frames",
    "encoder": "library.encoder",
    "evaluate": "library.evaluation",
    "evaluate_frame": "library.frames",
    "extend_vocabulary": "library.vocabularies",
    "fetch_data": "library.data",
    "fill_mask": "library.filling",
    "fine_tune": "library.fine_tuning",
    "inspect_checkpoint": "library.checkpoints",
    "load": "library.loading",
    "make_pretraining_data": "library.pretraining_data",
    "make_vocabulary": "library.vocabularies",
    "memory_diff": "library.records",
    "memory_peak": "library.records",
    "memory_plan": "library.machine",
    "memory_report": "library.records",
    "predict_files": "library.prediction",
    "predict_frame": "library.frames",
    "pretrain": "library.pretraining",
    "profile": "library.records",
    "rename_checkpoint": "library.checkpoints",
    "reproduce": "library.reproducing",
    "search": "operations.search",
    "serve": "service.running",
    "show_vocabulary": "library.vocabularies",
    "strip_checkpoint": "library.checkpoints",
    "word_filler": "library.filling",
    "write_report": "library.page",
}


def __getattr__(name):  # type: ignore[no-untyped-def]
    """Imports public names lazily (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    value = globals()[name] = getattr(importlib.import_module("%s.%s" % (__name__, _MODULES[name])), name)
    return value


def __dir__():  # type: ignore[no-untyped-def]
    return sorted(set(globals()) | set(__all__))
