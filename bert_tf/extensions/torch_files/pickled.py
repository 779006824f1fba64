"""Reads the description of tensors that `torch.save` pickles, without running anything that the file names.

A pickle is a program for a stack machine, which may call any function of any module. Here the program is interpreted by a table
of its instructions (Python's pickletools describes them): data become Python's, a tensor and its storage become descriptions,
and the few names that `torch.save` writes for weights stand for functions below. Any other name or instruction is refused.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

LARGEST = 1 << 24  # bytes; 400 tensors have 40 kB
_MOST_STEPS = 1_000_000  # each makes at most one small object
_MOST_DIMENSIONS = 16
_MOST_ELEMENTS = 1 << 48

# Of the types of storages, in torch.
_DTYPES: Mapping[str, str] = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}


class RefusedError(ValueError):
    """The message says what a pickle has that is not read."""


class Storage(NamedTuple):
    key: str  # its name in the archive
    dtype: str
    elements: int


class StoredTensor(NamedTuple):
    """A view of a storage, in elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def elements(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count


class _Name(NamedTuple):
    """A name of the file, which is looked up nowhere."""

    module: str
    name: str


class _Dict(dict[str, Any]):
    """An OrderedDict of the file, or a dict."""


def tensors(data: bytes) -> dict[str, StoredTensor]:
    """Returns the tensors of a pickled dict by name; RefusedError unless it has nothing but tensors, numbers and texts."""
    value = _Machine().run(data)
    if not isinstance(value, _Dict):
        raise RefusedError("it holds no dict of tensors")
    stored = {name: tensor for name, tensor in value.items() if isinstance(tensor, StoredTensor)}
    if not stored:
        raise RefusedError(f"it holds no tensors, but {', '.join(map(repr, list(value)[:3])) or 'nothing':.80}")
    return stored


class _Machine:
    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        try:
            for steps, (instruction, argument, _) in enumerate(pickletools.genops(data)):
                if steps > _MOST_STEPS:
                    raise RefusedError(f"more than {_MOST_STEPS} instructions")
                if instruction.name == "STOP":
                    return self._pop()
                step = _STEPS.get(instruction.name)
                if step is None:
                    raise RefusedError(f"the instruction {instruction.name}")
                step(self, argument)
        except RefusedError:
            raise
        except Exception as error:  # of pickletools: it parses bytes, and has no class of errors
            raise RefusedError(f"a damaged pickle ({type(error).__name__})") from error
        raise RefusedError("a pickle without an end")

    def _pop(self) -> Any:
        if not self._stack or (self._marks and self._marks[-1] >= len(self._stack)):
            raise RefusedError("a damaged pickle (nothing is left)")
        return self._stack.pop()

    def _pop_to_mark(self) -> list[Any]:
        if not self._marks:
            raise RefusedError("a damaged pickle (no mark)")
        start = self._marks.pop()
        values = self._stack[start:]
        del self._stack[start:]
        return values

    def _top(self, kind: type) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            raise RefusedError(f"values put into something else than a {kind.__name__.strip('_').lower()}")
        return self._stack[-1]

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def mark(self, _: Any) -> None:
        self._marks.append(len(self._stack))

    def put(self, number: Any) -> None:
        value = self._pop()
        self._memo[len(self._memo) if number is None else number] = value
        self._stack.append(value)

    def get(self, number: int) -> None:
        if number not in self._memo:
            raise RefusedError("a damaged pickle (an unknown reference)")
        self._stack.append(self._memo[number])

    def tuple_of(self, count: int) -> None:
        values = [self._pop() for _ in range(count)]
        self._stack.append(tuple(reversed(values)))

    def tuple_to_mark(self, _: Any) -> None:
        self._stack.append(tuple(self._pop_to_mark()))

    def append(self, _: Any) -> None:
        value = self._pop()
        self._top(list).append(value)

    def appends(self, _: Any) -> None:
        values = self._pop_to_mark()
        self._top(list).extend(values)

    def set_items(self, values: list[Any]) -> None:
        target = self._top(_Dict)
        if len(values) % 2:
            raise RefusedError("a damaged pickle (a key without a value)")
        for key, value in zip(values[::2], values[1::2]):
            if not isinstance(key, str):
                raise RefusedError("a key that is no text")
            target[key] = value

    def set_item(self, _: Any) -> None:
        value = self._pop()
        self.set_items([self._pop(), value])

    def name(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self._stack.append(_Name(module, name))

    def name_of_stack(self, _: Any) -> None:
        name, module = self._pop(), self._pop()
        if not (isinstance(name, str) and isinstance(module, str)):
            raise RefusedError("a damaged pickle (a name that is no text)")
        self._stack.append(_Name(module, name))

    def call(self, _: Any) -> None:
        arguments, function = self._pop(), self._pop()
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise RefusedError("a call of something without a name")
        handler = _FUNCTIONS.get(function)
        if handler is None:
            raise RefusedError(f"the name {function.module}.{function.name}")
        self._stack.append(handler(arguments))

    def build(self, _: Any) -> None:
        """Attributes of a dict, such as versions of modules, are left out."""
        if not isinstance(self._pop(), _Dict):
            raise RefusedError("attributes that are no dict")
        self._top(_Dict)

    def storage(self, _: Any) -> None:
        reference = self._pop()
        if not isinstance(reference, tuple) or len(reference) != 5 or reference[0] != "storage":
            raise RefusedError("a reference to something else than a storage")
        _, kind, key, _, elements = reference
        if not isinstance(kind, _Name) or kind.module != "torch" or kind.name not in _DTYPES:
            type_name = f"{kind.module}.{kind.name}" if isinstance(kind, _Name) else "no name"
            raise RefusedError(f"the type of storage {type_name}")
        if not isinstance(key, str) or not _is_size(elements):
            raise RefusedError("a storage of no size")
        self._stack.append(Storage(key, _DTYPES[kind.name], elements))


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST_ELEMENTS


def _tensor(arguments: tuple[Any, ...]) -> StoredTensor:
    """(storage, offset, shape, strides, requires_grad, hooks, ...), as torch._utils has them."""
    if len(arguments) < 4:
        raise RefusedError("a tensor without a shape")
    storage, offset, shape, strides = arguments[:4]
    if not isinstance(storage, Storage) or not isinstance(shape, tuple) or not isinstance(strides, tuple):
        raise RefusedError("a tensor without a storage, a shape or strides")
    if not all(map(_is_size, (offset, *shape, *strides))) or len(shape) != len(strides) or len(shape) > _MOST_DIMENSIONS:
        raise RefusedError("a tensor whose offset, shape or strides are no sizes")
    tensor = StoredTensor(storage, offset, shape, strides)
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides))
    if tensor.elements and last >= storage.elements:
        raise RefusedError(f"a tensor that ends at element {last} of a storage of {storage.elements}")
    return tensor


def _parameter(arguments: tuple[Any, ...]) -> StoredTensor:
    if not arguments or not isinstance(arguments[0], StoredTensor):
        raise RefusedError("a parameter without a tensor")
    return arguments[0]


def _ordered_dict(arguments: tuple[Any, ...]) -> _Dict:
    if arguments:
        raise RefusedError("an OrderedDict of other values")
    return _Dict()


_FUNCTIONS: Mapping[_Name, Callable[[tuple[Any, ...]], Any]] = {
    _Name("collections", "OrderedDict"): _ordered_dict,
    _Name("torch._utils", "_rebuild_tensor"): _tensor,
    _Name("torch._utils", "_rebuild_tensor_v2"): _tensor,
    _Name("torch._utils", "_rebuild_parameter"): _parameter,
}


def _constant(value: Any) -> Callable[[_Machine, Any], None]:
    return lambda machine, _: machine.push(value)


def _ignored(_: _Machine, __: Any) -> None:
    pass


_STEPS: Mapping[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _ignored,
    "FRAME": _ignored,
    "MARK": _Machine.mark,
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.get),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), _Machine.push),
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "EMPTY_TUPLE": _constant(()),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push(_Dict()),
    "TUPLE": _Machine.tuple_to_mark,
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "SETITEM": _Machine.set_item,
    "SETITEMS": lambda machine, _: machine.set_items(machine._pop_to_mark()),
    "GLOBAL": _Machine.name,
    "STACK_GLOBAL": _Machine.name_of_stack,
    "REDUCE": _Machine.call,
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.storage,
}
