"""The requirements.txt of an exported model: what uses it, in the versions that were tried."""

from __future__ import annotations

from bert_tf import extras
from bert_tf.tokenization.vocabulary import Vocabulary

FILE = "requirements.txt"

_ALWAYS = ("absl-py", "ijson", "numpy", "platformdirs", "psutil", "pyyaml", "tqdm")


def text(vocabulary: Vocabulary) -> str:
    """Pip reads it; `bert_tf` itself is installed without its dependencies, one of which is TensorFlow."""
    base, by_extra = extras.base(), extras.by_name()
    runtime = [line for line in by_extra["onnx"] if line.startswith("onnxruntime")]
    tokenizers = by_extra["vocabulary"] if vocabulary.own_rules else []
    parts = {
        "predict, encode, search": (*(base[name] for name in _ALWAYS), *runtime, *tokenizers),
        "serve": (base["jinja2"], *by_extra["serve"]),
    }
    lines = [
        "# Uses this model without TensorFlow. The package itself: pip install --no-deps dist/bert_tf-*.whl (make wheel)",
        f"# evaluate and calibrate --check also need: {' '.join(extras.METRICS)}",
    ]
    for commands, names in parts.items():
        lines += [f"# {commands}", *sorted(names)]
    return "\n".join(lines) + "\n"
