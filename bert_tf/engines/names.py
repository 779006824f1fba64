"""Names of engines, for settings; imports no TensorFlow, so that --help is quick."""

TENSORFLOW, ONNXRUNTIME, OPENVINO, AUTO = "tensorflow", "onnxruntime", "openvino", "auto"
NAMES = (TENSORFLOW, ONNXRUNTIME, OPENVINO, AUTO)
INT8 = "int8"  # for inference engines only, not for training
