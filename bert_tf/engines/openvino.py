"""Models in OpenVINO, on the CPU."""

from __future__ import annotations

from pathlib import Path

import openvino

from bert_tf.engines.base import Batch, Compute
from bert_tf.runtime import precision as formats


def open_file(path: Path, precision: str, threads: int) -> Compute:
    """Opens an ONNX or OpenVINO model; the rest of int8 is bfloat16 if the CPU supports it. `threads` in total."""
    half = precision == "bfloat16" or (precision == "int8" and formats.cpu_computes("bfloat16"))
    properties = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "bf16" if half else "f32",
        "ENABLE_CPU_PINNING": False,  # other processes may have been given the same cores
    }
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", properties)
    request, reads = compiled.create_infer_request(), [value.any_name for value in compiled.inputs]

    def compute(batch: Batch) -> dict[str, object]:
        found = request.infer({name: batch[name] for name in reads}, share_inputs=True)
        return {name: found[output] for output in found for name in output.names}

    return compute  # type: ignore[return-value]
