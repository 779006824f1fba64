"""Optional packages, by the groups of pyproject.toml, and the command that installs them."""

from __future__ import annotations

import bert_tf

# Upper bounds are the versions tried; pip chooses what fits the Python and the TensorFlow. Neither is declared:
# pyarrow 26 does not run beside NumPy 1, onnx 1.19.0 does not import beside the ml_dtypes of TensorFlow 2.15.
# uvicorn: `service.patience` overrides private methods, which another version may rename. h11: CVE-2025-43859 before 0.16.
EXTRAS = {
    "onnx": ("onnx>=1.16,!=1.19.0,<1.24", "onnxruntime>=1.17,<1.33"),
    "openvino": ("onnx>=1.16,!=1.19.0,<1.24", "openvino>=2024.4,<2026.5", "nncf>=2.13,<3.5"),
    "beam": ("apache-beam>=2.60,<2.78",),
    "nsight": ("nvtx>=0.2,<1",),
    "parquet": ("pyarrow>=15,<26",),
    "spark": ("pyspark>=3.5,<4.4", "pandas>=1.5,<4", "pyarrow>=15,<26"),
    "vocabulary": ("tokenizers>=0.20,<0.24",),
    "sentences": ("sentencex>=0.6,<2",),
    "serve": ("uvicorn>=0.30,<0.55", "h11>=0.16,<1", "starlette>=0.40,<2", "prometheus-client>=0.20,<1"),
}


def install(name: str) -> str:
    """Returns the command that installs a group beside the TensorFlow that is installed.

    It names the packages, since in a clone there is no package `bert_tf`, and TensorFlow, since pip would otherwise replace the
    versions of NumPy, protobuf and ml_dtypes that it needs.
    """
    tensorflow = bert_tf._installed_tensorflow()
    requirements = [*EXTRAS[name], *(["{}=={}".format(*tensorflow)] if tensorflow else [])]
    return "pip install " + " ".join(f"'{requirement}'" for requirement in requirements)
