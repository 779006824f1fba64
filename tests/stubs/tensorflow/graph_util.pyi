from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow import Tensor
from tensorflow.compat import v1 as tf1

def import_graph_def(
    graph_def: tf1.GraphDef,
    input_map: Mapping[str, Tensor] | None = None,
    return_elements: Sequence[str] = (),
    name: str | None = None,
) -> list[Any]: ...
