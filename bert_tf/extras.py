"""Optional packages, by the groups of pyproject.toml, and the command that installs them."""

from __future__ import annotations

EXTRAS = {
    "onnx": ("onnx>=1.16,<1.19", "onnxruntime>=1.17"),
    "openvino": ("onnx>=1.16,<1.19", "openvino>=2024.4", "nncf>=2.13"),
    "beam": ("apache-beam>=2.60",),
    "nsight": ("nvtx>=0.2",),
    "parquet": ("pyarrow>=15",),
    "spark": ("pyspark>=3.5,<3.6", "pandas>=1.5,<3", "pyarrow>=15"),
    "vocabulary": ("tokenizers>=0.20",),
    "sentences": ("sentencex>=0.6",),
    "serve": ("uvicorn>=0.30", "starlette>=0.40", "prometheus-client>=0.20"),
}


def install(name: str) -> str:
    """Returns the command that installs a group, by its packages: in a clone there is no package `bert_tf` to name."""
    return "pip install " + " ".join(f"'{requirement}'" for requirement in EXTRAS[name])
