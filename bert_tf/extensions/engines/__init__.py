"""Engines: checkpoints converted to ONNX, and computed by ONNX Runtime or OpenVINO (docs/engines.md)."""

from bert_tf.extension import Extension

ONNXRUNTIME, OPENVINO, AUTO = "onnxruntime", "openvino", "auto"

EXTENSION = Extension(
    engines={
        ONNXRUNTIME: f"{__name__}.registry:ONNXRUNTIME_ROW",
        OPENVINO: f"{__name__}.registry:OPENVINO_ROW",
        AUTO: f"{__name__}.registry:AUTOMATIC",
    }
)
