"""Trained models as ONNX and OpenVINO graphs, in full and reduced precision."""
