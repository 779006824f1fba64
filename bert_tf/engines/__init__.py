"""What computes the outputs of trained models: TensorFlow, ONNX Runtime, OpenVINO."""
