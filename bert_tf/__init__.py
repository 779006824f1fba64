"""BERT fine-tuning with TensorFlow Estimator.

    import bert_tf
    model = bert_tf.fine_tune("MRPC", output_dir="out/mrpc")
    model.predict([("He left.", "He went away.")])[0].label

docs/library.md says more. Importing the package checks that it can run here; TensorFlow is imported when it is needed.
"""

import importlib
import sys
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bert_tf.errors import BertError
    from bert_tf.library.fine_tuning import fine_tune
    from bert_tf.library.loading import load
    from bert_tf.library.model import Model
    from bert_tf.library.result import Result
    from bert_tf.tasks.in_memory import SentenceTask

__all__ = ["BertError", "Model", "Result", "SentenceTask", "fine_tune", "load"]

__version__ = "0.1.0"

_TENSORFLOW_PACKAGES = ("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tensorflow-intel")


def _installed_tensorflow() -> "str | None":
    for package in _TENSORFLOW_PACKAGES:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def _platform_problem(python: "tuple[int, int]", tensorflow: "str | None") -> "str | None":
    """Returns one line on why bert_tf cannot run with these versions, or None.

    Args:
      python: (major, minor) of the interpreter.
      tensorflow: version of the installed TensorFlow, or None.
    """
    if not (3, 9) <= python <= (3, 11):
        return "bert_tf needs Python 3.9 to 3.11 (TensorFlow 2.15, the last with Estimator), this is Python %d.%d" % python
    if tensorflow is None:
        return "bert_tf needs TensorFlow 2.15, none is installed: pip install -r requirements.txt"
    if tensorflow.split(".")[:2] != ["2", "15"]:
        return (
            "bert_tf needs TensorFlow 2.15 (the last with Estimator), %s is installed: pip install -r requirements.txt"
            % tensorflow
        )
    return None


_problem = _platform_problem(sys.version_info[:2], _installed_tensorflow())
if _problem:
    raise ImportError(_problem, name=__name__)

_MODULES = {
    "BertError": "errors",
    "Model": "library.model",
    "Result": "library.result",
    "SentenceTask": "tasks.in_memory",
    "fine_tune": "library.fine_tuning",
    "load": "library.loading",
}


def __getattr__(name):  # type: ignore[no-untyped-def]
    """Imports what is asked for first (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    value = globals()[name] = getattr(importlib.import_module("%s.%s" % (__name__, _MODULES[name])), name)
    return value


def __dir__():  # type: ignore[no-untyped-def]
    return sorted(set(globals()) | set(__all__))
