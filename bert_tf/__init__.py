"""BERT fine-tuning with TensorFlow Estimator.

    import bert_tf
    model = bert_tf.fine_tune("MRPC", output_dir="out/mrpc")
    model.predict([("He left.", "He went away.")])[0].label

See docs/library.md. The import checks that the package can run here; TensorFlow is imported lazily.
"""

import ast
import importlib
import sys
from pathlib import Path

from bert_tf.versions import __version__ as __version__
from bert_tf.versions import installed_tensorflow, platform_problem

_tensorflow = installed_tensorflow()
_problem = platform_problem(sys.version_info[:2], _tensorflow and _tensorflow[1])
if _problem:
    raise ImportError(_problem, name=__name__)

_HERE = Path(__file__).parent
if not _HERE.is_dir():  # as of Spark's --py-files
    raise ImportError("bert_tf runs from a folder, not in %s: install its wheel on each machine" % _HERE.parent, name=__name__)


def _is_there(module):  # type: ignore[no-untyped-def]
    """False for the module of an extension whose folder was deleted."""
    _, *parts = module.split(".")
    return parts[:1] != ["extensions"] or (_HERE / parts[0] / parts[1]).is_dir()


# The module of each public name, which is imported "as" itself.
_MODULES = {
    alias.name: node.module
    for node in ast.parse((_HERE / "__init__.pyi").read_bytes()).body
    if isinstance(node, ast.ImportFrom) and _is_there(node.module)
    for alias in node.names
    if alias.asname == alias.name
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
