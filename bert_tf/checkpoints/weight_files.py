"""Tensors by name from files of weights in Hugging Face's layout: safetensors or torch.save's, in one file or several."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bert_tf import extension
from bert_tf.checkpoints import model_formats
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME
from bert_tf.errors import CheckpointError
from bert_tf.io import documents, files


class Entry(NamedTuple):
    """Known without reading the values."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Size of the values; 0 for strings."""
        import ml_dtypes  # a folder is searched for weights where neither this nor safetensors is installed

        kinds: Mapping[str, Any] = {"bfloat16": ml_dtypes.bfloat16}
        with contextlib.suppress(TypeError):
            return math.prod(self.shape) * int(np.dtype(kinds.get(self.dtype, self.dtype)).itemsize)
        return 0


WEIGHTS_NAME, TORCH_NAME = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"  # after the name of the whole, which is in several files
NAMES = (WEIGHTS_NAME, f"{WEIGHTS_NAME}{INDEX}", TORCH_NAME, f"{TORCH_NAME}{INDEX}")  # the first one is read

_MOST_FILES = 1000
_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool"}

Array = npt.NDArray[Any]


class WeightFile(Protocol):
    """Tensors of one file."""

    @property
    def entries(self) -> Mapping[str, Entry]: ...

    def read(self, name: str) -> Array: ...


class WeightFiles:
    """Names, shapes and dtypes at once; values when they are asked for."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens a file, or the files that an index names; CheckpointError for anything else."""
        self.path = Path(path)
        self.files = all_of(self.path)
        opened = [_opened(file) for file in self.files]
        self._homes = {name: file for file in opened for name in file.entries}
        self.entries: Mapping[str, Entry] = {name: self._homes[name].entries[name] for name in sorted(self._homes)}

    def read(self, name: str) -> Array:
        """Raises CheckpointError if the tensor is damaged, or of a type that NumPy lacks."""
        return self._homes[name].read(name)

    @property
    def digest(self) -> str:
        """SHA-256 of the file, or of the digests of all."""
        digests = [files.digest(file) for file in self.files]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def in_folder(folder: str | os.PathLike[str]) -> Path | None:
    """Returns a folder's weights, or the index of their files; None if there are none.

    A TensorFlow checkpoint goes before a pickle beside it.
    """
    path = next((path for path in (Path(folder) / name for name in NAMES) if path.is_file()), None)
    has_checkpoint = (Path(folder) / f"{CHECKPOINT_NAME}.index").is_file()
    return None if path is None or (has_checkpoint and path.name != WEIGHTS_NAME) else path


def all_of(path: Path) -> tuple[Path, ...]:
    """Returns the files that an index names, else the file itself."""
    return _listed(path) if path.name.endswith(INDEX) else (path,)


def is_file_of_weights(path: Path) -> bool:
    return path.name.endswith(INDEX) or path.suffix in (
        *(Path(name).suffix for name in (WEIGHTS_NAME, TORCH_NAME)),
        *extension.named("weight_files"),
    )


def _listed(index: Path) -> tuple[Path, ...]:
    try:
        names = sorted(set(documents.read_json(index)["weight_map"].values()))
        outside = next((name for name in names if Path(name).name != name), None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, documents.DocumentError) as error:
        raise CheckpointError(f"{index}: cannot read which files the weights are in; fetch it again") from error
    if outside is not None:
        raise CheckpointError(f"{index}: {outside!r:.80} is not the name of a file beside it; fetch it again")
    if not 0 < len(names) <= _MOST_FILES:
        raise CheckpointError(f"{index}: the weights are in {len(names)} files, expected 1 to {_MOST_FILES}; fetch it again")
    return tuple(index.parent / name for name in names)


class _Safetensors:
    def __init__(self, path: Path) -> None:
        self._path = path
        with self._opened() as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  (a file, not a mapping)
            kinds = {name: part.get_dtype() for name, part in slices.items()}
            self.entries: Mapping[str, Entry] = {
                name: Entry(tuple(part.get_shape()), _TYPES.get(kinds[name], kinds[name].lower()))
                for name, part in slices.items()
            }

    def read(self, name: str) -> Array:
        with self._opened() as file:
            try:
                return np.asarray(file.get_tensor(name))
            except (TypeError, AttributeError) as error:  # a type that NumPy lacks
                raise CheckpointError(
                    f"{self._path}: {name} is of type {self.entries[name].dtype}, which is not read"
                ) from error

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        import safetensors

        try:
            files.check_plain(self._path)
            with safetensors.safe_open(self._path, framework="numpy") as file:
                yield file
        except OSError as error:
            raise CheckpointError(f"{self._path}: cannot read the weights: {files.reason(error)}") from error
        except safetensors.SafetensorError as error:
            raise CheckpointError(f"{self._path}: damaged weights: {error}; fetch them again") from error


def _opened(path: Path) -> WeightFile:
    reader = extension.named("weight_files").get(path.suffix)
    if reader is None and path.suffix == Path(TORCH_NAME).suffix:
        extension.needed("torch_files", str(path))
    opened: WeightFile = extension.load(reader)(path) if reader else _Safetensors(path)
    return opened


_RESAVED = (  # transformers 5 reads neither; the class keeps the head
    'pip install "transformers<5" torch {library}; python -c "import json, sys, transformers; folder, output = sys.argv[1:];'
    " [name] = json.load(open(folder + '/config.json')).get('architectures') or ['AutoModel'];"
    " getattr(transformers, name).from_pretrained(folder, from_{short}=True).save_pretrained(output);"
    ' transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(output)" {folder} OUTPUT'
)
_OTHERS = {  # what they are, their library and its name in `from_pretrained`
    "tf_model.h5": ("Keras weights of transformers", "tf-keras", "tf"),
    "flax_model.msgpack": ("weights of Flax", "flax", "flax"),
}


def unread(folder: Path) -> str:
    """Empty if there is nothing known."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    of_format = next((why for one in model_formats.every() if (why := one.why_unread(folder))), "")
    if of_format:
        return of_format
    other = next((name for name in _OTHERS if name in names), None)
    if other is not None:
        what, library, short = _OTHERS[other]
        resaved = _RESAVED.format(library=library, short=short, folder=folder)
        return f"{other}: {what} are not read; save the model as {WEIGHTS_NAME}: {resaved}"
    for usual in (WEIGHTS_NAME, TORCH_NAME):
        single = [name for name in names if name.endswith(Path(usual).suffix)]
        if len(single) == 1 and single != [usual]:
            return f"{single[0]} is not read; name it {usual}"
    return ""
