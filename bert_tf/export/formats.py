"""Formats by name. The table itself imports nothing of a format: `--help` is quick, and optional packages may be missing."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.errors import FlagError

if TYPE_CHECKING:
    from bert_tf.export.exported import Exported


@dataclasses.dataclass(frozen=True)
class Extra:
    """Optional packages.

    Attributes:
      name: of their group in pyproject.toml.
      imports: modules that have to be there.
    """

    name: str
    imports: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Format:
    """One format.

    Attributes:
      name: value of `--format`.
      write: writes a model into a folder that is empty; the same bytes each time. The folder is temporary: its name may not
        get into what is written.
      extra: what it needs beside requirements.txt.
    """

    name: str
    write: Callable[[Exported, Path], None]
    extra: Extra | None = None

    def require(self) -> None:
        """Refuses where an optional package is missing.

        Raises:
          FlagError: one is; says how to install it.
        """
        missing = [name for name in self.extra.imports if importlib.util.find_spec(name) is None] if self.extra else []
        if self.extra and missing:
            raise FlagError(f"--format={self.name} needs {', '.join(missing)}: pip install 'bert_tf[{self.extra.name}]'")


def _saved_model(exported: Exported, folder: Path) -> None:
    from bert_tf.export.saved_model import writer

    writer.write(exported, folder)


FORMATS: Mapping[str, Format] = {row.name: row for row in (Format("saved_model", _saved_model),)}
