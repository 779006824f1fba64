"""BERT fine-tuning with TensorFlow Estimator.

    import bert_tf
    model = bert_tf.fine_tune("MRPC", output_dir="out/mrpc")
    model.predict([("He left.", "He went away.")])[0].label

See docs/library.md. The import checks that the package can run here; TensorFlow is imported lazily.
"""

import ast
import importlib
import sys
from importlib import metadata
from pathlib import Path

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

# Of each public name, the module that has it.
_MODULES = {
    alias.name: node.module
    for node in ast.parse(Path(__file__).with_name("__init__.pyi").read_bytes()).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
__all__ = sorted(_MODULES)


def __getattr__(name):  # type: ignore[no-untyped-def]
    """Imports public names lazily (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value


def __dir__():  # type: ignore[no-untyped-def]
    return sorted(set(globals()) | set(__all__))
