from collections.abc import Mapping

from tensorflow import Tensor
from tensorflow.compat import v1 as tf1

def import_graph_def(
    graph_def: tf1.GraphDef, input_map: Mapping[str, Tensor] | None = None, *, name: str | None = None
) -> None: ...
