"""What a step copies between GPU and host, by flags: python -m tests.estimator.copies_table prints the table of docs/gpu.md."""

import sys
from collections.abc import Iterator

from tests.estimator.gpu_placement import Copies
from tests.estimator.test_gpu_placement import FLAGS, training

LAYERS = 12  # of BERT-Base


def row(copies: Copies) -> list[int]:
    """Returns how often the host reads, waits without reading, and gets a result; and copies to the GPU."""
    waits = [copy for copy in copies.to_host if copy.source.startswith("^")]
    results = [copy for copy in copies.to_host if not copy.readers]
    return [len(copies.to_host) - len(waits) - len(results), len(waits), len(results), len(copies.to_device)]


def lines() -> Iterator[str]:
    yield "| flags | read within the step | waits | results | to the GPU |\n|---|---|---|---|---|\n"
    for flags, settings in FLAGS.items():
        yield f"| {flags} | {' | '.join(map(str, row(training(layers=LAYERS, **settings))))} |\n"


if __name__ == "__main__":
    sys.stdout.writelines(lines())
