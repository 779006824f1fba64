"""Whether another checkpoint stands for a run than before, by the files that say so; no TensorFlow."""

from __future__ import annotations

import os
from pathlib import Path

from bert_tf.run_layout import BEST, LIST

_PUBLISHED = "bert_model.ckpt.index"

Signature = tuple[object, ...]


class Watch:
    """Looks at the lists of checkpoints of a run, or at the index of one checkpoint."""

    def __init__(self, run: str | os.PathLike[str]) -> None:
        """Looks for the first time.

        Args:
          run: folder of a run, or a checkpoint.
        """
        self._run = Path(run)
        self._known = self._seen = self._look()

    def has_changed(self) -> bool:
        """Returns whether it has, and is the same as at the look before: what is being written is left to its writer."""
        before, self._seen = self._seen, self._look()
        if self._seen in (self._known,) or self._seen != before or not any(self._seen):
            return False
        self._known = self._seen
        return True

    def _look(self) -> Signature:
        """Returns what tells the checkpoint that stands for the run, see `estimator.best.of_run`, from others."""
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
