"""Folders for downloads and user files.

In a clone: `checkpoints/`, `data/` and `converted/` beside the package. Installed: $BERT_TF_HOME, else the user's
cache folder. Code compiled for the machine, `native/`, is there for a clone as well.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from bert_tf.errors import OutputError

VARIABLE = "BERT_TF_HOME"
PACKAGE = Path(__file__).resolve().parent
SAMPLE = PACKAGE / "sample"  # folders of tasks, written for this project

_OF_CLONES = "run_classifier.py"  # beside the package


def clone(package: Path = PACKAGE) -> Path | None:
    return package.parent if (package.parent / _OF_CLONES).is_file() else None


def folder(environment: Mapping[str, str], package: Path = PACKAGE) -> Path:
    """Returns the parent of `checkpoints`, `data` and `converted`, existing or not; OutputError without a home."""
    return (None if environment.get(VARIABLE) else clone(package)) or _outside_clones(environment)


def compiled(environment: Mapping[str, str]) -> Path:
    """Returns the folder for code compiled for the machine, never in a clone, existing or not."""
    return _outside_clones(environment) / "native"


def _outside_clones(environment: Mapping[str, str]) -> Path:
    named = environment.get(VARIABLE)
    try:
        folder = Path(os.path.expanduser(named)) if named else platformdirs.user_cache_path("bert_tf")
    except RuntimeError:  # of newer platformdirs; older ones leave the ~
        folder = Path("~")
    if folder.parts[:1] and folder.parts[0].startswith("~"):
        raise OutputError(
            f"{named or 'this user'} has no home folder: set HOME, or {VARIABLE}, to a folder that can be written"
        )
    return folder
