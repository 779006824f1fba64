"""Optional packages, by the groups of pyproject.toml, and the command that installs them."""

from __future__ import annotations

import ast
import importlib.util
import re
from importlib import metadata
from pathlib import Path

from bert_tf import versions
from bert_tf.errors import FlagError

_PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"  # of a clone
_BY_EXTRA = re.compile(r"""(.*?)\s*;\s*extra == ['"](\w+)['"]""")


_PACKAGE = re.compile(r"[\w-]+")
METRICS = {"scikit-learn": "sklearn", "scipy": "scipy"}  # modules by package


def refuse_missing_metrics() -> None:
    """Raises FlagError if what metrics need is not installed, as beside an exported model."""
    missing = [package for package, module in METRICS.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise FlagError(f"metrics need {', '.join(missing)}: pip install {' '.join(missing)}")


def by_name() -> dict[str, list[str]]:
    """Requirements by extra: those of pyproject.toml in a clone, else of the installed package's metadata."""
    if not _PROJECT.is_file():
        rows = [_BY_EXTRA.fullmatch(row) for row in metadata.requires("bert_tf") or ()]
        extras: dict[str, list[str]] = {row[2]: [] for row in rows if row}
        for row in filter(None, rows):
            extras[row[2]].append(row[1])
        return extras
    section = _PROJECT.read_text(encoding="utf-8").partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    # Python 3.9 and 3.10 have no tomllib.
    return {name: ast.literal_eval(value) for name, value in re.findall(r"^(\w+) = (\[.*\])$", section, re.MULTILINE)}


def base() -> dict[str, str]:
    """Requirements without extras by package: those of requirements-base.txt in a clone, else of the installed package."""
    path = _PROJECT.with_name("requirements-base.txt")
    rows = path.read_text(encoding="utf-8").splitlines() if path.is_file() else metadata.requires("bert_tf") or ()
    return {_PACKAGE.match(row)[0]: row for row in rows if _PACKAGE.match(row) and "extra ==" not in row}  # type: ignore[index]


def install(name: str) -> str:
    """Returns the command that installs a group beside the installed TensorFlow.

    It names the packages, since a clone has no package `bert_tf`, and TensorFlow, since pip would otherwise replace the
    versions of NumPy, protobuf and ml_dtypes that it needs.
    """
    tensorflow = versions.installed_tensorflow()
    names = [*by_name().get(name, []), *(["{}=={}".format(*tensorflow)] if tensorflow else [])]
    return "pip install " + " ".join(f"'{name}'" for name in names)
