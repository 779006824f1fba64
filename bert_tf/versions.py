"""Version of the package, and the versions of Python and TensorFlow that it needs. Any Python 3 can read this file."""

import os
from importlib import metadata

__version__ = "0.1.0"

_TENSORFLOW_PACKAGES = ("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tensorflow-intel")


def installed_tensorflow() -> "tuple[str, str] | None":
    for package in _TENSORFLOW_PACKAGES:
        try:
            return package, metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def platform_problem(python: "tuple[int, int]", tensorflow: "str | None", system: str = os.name) -> "str | None":
    """Returns one line on why bert_tf cannot run here with these versions, or None; newer TensorFlow 2.x is accepted.

    Without TensorFlow exported models can be used, with a newer Python, too.
    """
    if system != "posix":
        return "bert_tf runs on Linux, under Windows in WSL 2."
    if python < (3, 9):
        return "bert_tf needs Python 3.9 or newer; this is Python %d.%d." % python
    if tensorflow is None:
        return None
    major, _, rest = tensorflow.partition(".")
    minor = rest.partition(".")[0]
    if major != "2" or not minor.isdigit() or int(minor) < 15:
        return "bert_tf needs TensorFlow 2.15 to 2.21; %s is installed. Run: pip install -r requirements.txt" % tensorflow
    return None


def lacks_tensorflow(error: BaseException) -> bool:
    """Whether a module is missing where TensorFlow is, too: beside an exported model few packages are installed."""
    return isinstance(error, ModuleNotFoundError) and (error.name == "tensorflow" or installed_tensorflow() is None)


def without_tensorflow(python: "tuple[int, int]") -> str:
    """Returns one line for what needs TensorFlow where it is not installed."""
    where = "" if python <= (3, 13) else " with Python 3.9 to 3.13 (this is %d.%d)" % python
    return (
        "this needs TensorFlow, which is not installed; only models exported with --format=onnx do without it"
        " (docs/without_tensorflow.md). Run: pip install -r requirements.txt" + where
    )
