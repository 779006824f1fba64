from collections.abc import Iterable, Mapping
from typing import Any

from tensorflow import Operation, Tensor
from tensorflow.compat.v1 import Session
from tensorflow.compat.v1 import train as train

class Builder:
    def __init__(self, export_dir: str) -> None: ...
    def add_meta_graph_and_variables(
        self,
        sess: Session,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        *,
        main_op: Operation | None = None,
        clear_devices: bool = False,
        strip_default_attrs: bool = False,
        saver: train.Saver | None = None,
    ) -> None: ...
    def save(self, as_text: bool = False) -> str: ...

def build_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any], method_name: str) -> Any: ...
def build_tensor_info(tensor: Tensor) -> Any: ...
def load(sess: Session, tags: Iterable[str], export_dir: str) -> Any: ...
