"""Engines: checkpoints converted to ONNX, and computed by ONNX Runtime or OpenVINO (docs/engines.md)."""

from bert_tf.extension import Extension
from bert_tf.extensions.engines.names import AUTO, ONNXRUNTIME, OPENVINO

EXTENSION = Extension(
    engines={
        ONNXRUNTIME: f"{__name__}.registry:ONNXRUNTIME_ROW",
        OPENVINO: f"{__name__}.registry:OPENVINO_ROW",
        AUTO: f"{__name__}.registry:AUTOMATIC",
    }
)
