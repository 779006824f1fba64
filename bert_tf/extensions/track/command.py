"""Track: sends runs to an experiment tracker."""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bert_tf import extension, run_layout
from bert_tf.errors import FlagError
from bert_tf.extensions.track import MLFLOW, TRACKERS, trackers
from bert_tf.io import files
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command, warnings_only
from bert_tf.settings import Setting, read_settings, setting

if TYPE_CHECKING:
    from bert_tf.extensions.track.replay import Replay, Sent


@dataclasses.dataclass(frozen=True)
class TrackSettings:
    run: str = setting(
        None,
        "folder of a run, or of --seeds, --folds or a sweep",
        positional=True,
        required=True,
        refuse_missing=files.refuse_missing_folder,
    )
    tracker: str = setting(None, f"required: {', '.join(TRACKERS)}", choices=TRACKERS, required=True)
    register: str | None = setting(None, f"with {MLFLOW}: also upload the trained model, and register it by this name")


@takes(TrackSettings)
def track(run: str | os.PathLike[str], **settings: Any) -> tuple[Sent, ...]:
    """Sends a run to an experiment tracker, only what is new; as `python -m bert_tf track`.

    Args:
      run: output folder of a run, finished or not, or of several runs (seeds, sweep).
      **settings: `tracker`: mlflow, wandb or tensorboard; `register`: with mlflow, the name to register the trained model by.

    Returns:
      For each run its `remote` id, the number of `points` and `files` sent, and the `version` of its registered model.

    Raises:
      BertError: there is no run, the tracker's package is missing, or it cannot be reached.
    """
    return tuple(send(read_settings(TrackSettings, {"run": run, **settings})))


def send(settings: TrackSettings) -> Iterator[Sent]:
    """Sends each run and registers its model, lazily."""
    extension.needed("report", "track")
    from bert_tf.extensions.report import run_files
    from bert_tf.extensions.track import replay

    if settings.register and settings.tracker != MLFLOW:
        raise FlagError(f"--register belongs to --tracker={MLFLOW}")
    trackers.require(settings.tracker)
    folder = Path(settings.run)
    begun = sorted(path.parent for path in folder.glob(f"*/{run_layout.RECORD}"))
    registered = {run.folder for run in run_files.read_runs([folder])} if settings.register else ()
    for run in run_files.read_runs([folder, *filter(run_files.numbered, begun)]):  # folds are below their final model
        with replay.opened(run.folder, settings.tracker) as sender:
            sent = sender.send()
            version = _registered(sender, str(settings.register)) if run.folder in registered else ""
            yield dataclasses.replace(sent, version=version)


def _registered(sender: Replay, name: str) -> str:
    """Registers the model of a run unless that was done; returns its version."""
    from bert_tf.extensions.track import to_mlflow

    model, tracker = to_mlflow.find_model(sender.folder), cast("to_mlflow.MLflow", sender.tracker)
    return sender.guarded(lambda: tracker.register(model, name))


def _say(text: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S"), text, flush=True)


def _print(call: Call) -> None:
    logging.disable(logging.WARNING)  # from trackers' packages: failures become one-line errors
    try:
        _run(call)
    finally:
        logging.disable(logging.NOTSET)


def _run(call: Call) -> None:
    settings, pid = call.settings, call.own["follow_pid"]
    if pid is not None:
        from bert_tf.extensions.track import follow

        follow.follow(Path(settings.run), settings.tracker, pid, say=_say)
        return
    for sent in send(settings):
        registered = f"; model {settings.register} version {sent.version}" if sent.version else ""
        print(f"{sent.run}: {sent.tracker} run {sent.remote}, new: {sent.points} values, {sent.files} files{registered}")


COMMAND = Command(
    "Sends a run to an experiment tracker, each part once (docs/tracking.md).",
    TrackSettings,
    _print,
    example="python -m bert_tf track out/mrpc --tracker=tensorboard",
    own=(Setting("follow_pid", int, None, ""),),
    stopped="stopped; the same command sends the rest",
    log=warnings_only,
)
