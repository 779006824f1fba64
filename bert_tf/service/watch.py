"""Detects a new checkpoint of a run from its files; no TensorFlow."""

from __future__ import annotations

import os
from pathlib import Path

from bert_tf.run_layout import BEST, LIST

_PUBLISHED = "bert_model.ckpt.index"

Signature = tuple[object, ...]


class Watch:
    """Watches the checkpoint lists of a run, or the index of a single checkpoint."""

    def __init__(self, run: str | os.PathLike[str]) -> None:
        self._run = Path(run)
        self._known = self._seen = self._look()

    def has_changed(self) -> bool:
        """True if changed and the same as in the previous call: a file that is being written is left to its writer."""
        before, self._seen = self._seen, self._look()
        if self._seen in (self._known,) or self._seen != before or not any(self._seen):
            return False
        self._known = self._seen
        return True

    def _look(self) -> Signature:
        if not self._run.is_dir():
            return (_stamp(self._run.with_name(f"{self._run.name}.index")),)
        best = _stamp(self._run / BEST / LIST)
        return (_stamp(self._run / _PUBLISHED), best, None if best else _stamp(self._run / LIST))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
