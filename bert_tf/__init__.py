"""BERT fine-tuning with TensorFlow Estimator.

Importing the package checks that it can run here; it does not import TensorFlow.
"""

import sys
from importlib import metadata

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
    raise SystemExit(_problem)
