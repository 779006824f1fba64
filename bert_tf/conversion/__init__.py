"""Trained models as graphs of ONNX and OpenVINO, in full and in reduced precision."""
