"""Inference engines: TensorFlow, ONNX Runtime, OpenVINO."""
