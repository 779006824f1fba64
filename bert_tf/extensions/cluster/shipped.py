"""Models for workers without access to the run folder: one file, unpacked once for all processes of a machine."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import stat
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bert_tf.batch import model_copy
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints import model_formats
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME
from bert_tf.errors import CheckpointError, OutputError
from bert_tf.io import atomic, files, lock

_NAMES = "copied.txt"  # names of the files of a copy, one a line
_KEPT_S = 86400.0  # a copy unused for this time is deleted when another is made


def pack(model: Trained, folder: Path) -> Path:
    """Packs a model without training state into one file, named by its content."""
    if not model.has_checkpoint:
        return _packed(model.files, folder)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        model_copy.write(model, Path(made))
        with atomic.readable_errors(folder):
            return _packed({path.name: path for path in Path(made).iterdir()}, folder)


def _packed(files_of_model: Mapping[str, Path], folder: Path) -> Path:
    packed = folder / "whole.tar"
    with tarfile.open(packed, "w") as archive:
        for name, path in sorted(files_of_model.items()):
            member = tarfile.TarInfo(name)
            member.size = path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(member, file)
    return packed.replace(folder / f"bert_tf-{files.digest(packed)[:32]}.tar")


def unpacked(path: str) -> str:
    """Returns the local prefix of a packed checkpoint; raises CheckpointError if the file is damaged."""
    folder = made_once(Path(path).stem, functools.partial(_unpack, path))
    of_model = next((inner for inner in folder.iterdir() if inner.is_dir()), folder)  # one of several has its own
    return str(model_formats.file_of(of_model) or folder / CHECKPOINT_NAME)


def _unpack(path: str, folder: Path) -> None:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                source = archive.extractfile(member)
                if source is not None:
                    place = Path(folder, *(part for part in Path(member.name).parts[-2:] if part not in ("/", "..")))
                    place.parent.mkdir(exist_ok=True)
                    with place.open("wb") as target:
                        shutil.copyfileobj(source, target)
    except tarfile.TarError as error:
        raise CheckpointError(f"{path}: damaged on its way: {error}") from error


def made_once(name: str, fill: Callable[[Path], None]) -> Path:
    """Returns a folder that `fill` fills once per machine; OutputError if others can write to its parent."""
    home = Path(tempfile.gettempdir(), f"bert_tf-{os.getuid()}")
    with atomic.readable_errors(home):
        with contextlib.suppress(FileExistsError):
            home.mkdir(mode=0o700)
        status = home.lstat()
        if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o022:
            raise OutputError(f"{home}: not a folder that only this user can write; delete it, or set TMPDIR to another folder")
    folder = home / name
    with lock.claiming(folder, wait=True):
        if not _is_whole(folder):
            _delete_old(home)
            atomic.delete_unfinished(folder)
            with atomic.replacing(folder) as temporary:
                temporary.mkdir()
                fill(temporary)
                names = [f"{path.relative_to(temporary)}\n" for path in temporary.rglob("*") if path.is_file()]
                (temporary / _NAMES).write_text("".join(names), encoding="utf-8")
        os.utime(folder)
    return folder


def _is_whole(folder: Path) -> bool:
    """Whether all files are there: systems delete those in /tmp that nobody has used for days."""
    try:
        names = (folder / _NAMES).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return False
    return all((folder / name).is_file() for name in names)


def _delete_old(home: Path) -> None:
    atomic.delete_old(home)
    for other in home.glob("[!.]*"):
        with contextlib.suppress(OSError), lock.claiming(other) as holder:
            if holder is None and other.stat().st_mtime < time.time() - _KEPT_S:
                shutil.rmtree(other)
