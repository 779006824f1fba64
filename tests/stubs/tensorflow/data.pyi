from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tensorflow import TensorSpec

class Options:
    autotune: Any
    threading: Any
    experimental_optimization: Any
    deterministic: bool

class Dataset:
    @staticmethod
    def from_generator(generator: Callable[[], Iterable[Any]], *, output_signature: Mapping[str, TensorSpec]) -> Dataset: ...
    def prefetch(self, buffer_size: int) -> Dataset: ...
    def with_options(self, options: Options) -> Dataset: ...
    def __iter__(self) -> Iterator[Any]: ...
