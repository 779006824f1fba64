"""Names of engines."""

ONNXRUNTIME, OPENVINO, AUTO = "onnxruntime", "openvino", "auto"
