from typing import Any

from tensorflow import Operation
from tensorflow.data import Dataset

class _Iterator:
    initializer: Operation
    def get_next(self) -> Any: ...

def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> _Iterator: ...
