"""Card: writes the model card of a trained model."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path
from typing import Any

from bert_tf import extension, run_layout
from bert_tf.batch.job import ModelOverrides
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import CheckpointError, OutputError
from bert_tf.extensions.card import Credits
from bert_tf.io import atomic, lock
from bert_tf.io.files import PIPE
from bert_tf.io.log_form import log
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command, warnings_only
from bert_tf.run_layout import CARD
from bert_tf.settings import group, read_settings, setting


@dataclasses.dataclass(frozen=True)
class CardSettings:
    run: str = setting(None, "run or checkpoint", positional=True, required=True, refuse_missing=refuse_missing_model)
    output: str | None = setting(None, f"file to write; default: RUN/{CARD}; - prints the card", written=True)
    overwrite: bool = setting(False, "replace a file that is not a card, or an edited card")
    task_name: str | None = setting(None, "task of the model, if it has no run_config.json")
    credits: Credits = group(Credits)


@takes(CardSettings)
def write_card(run: str | os.PathLike[str], *, output: str | os.PathLike[str] | None = None, **settings: Any) -> Path:
    """Writes the model card of a run; as `python -m bert_tf card`. Returns the file.

    Args:
      run: a run folder (its best or newest checkpoint), or a checkpoint.
      output: file to write; by default MODEL_CARD.md in the folder.
      **settings: the command's flags, by name.

    Raises:
      BertError: there is no trained model, or the file cannot be written.
    """
    return write(read_settings(CardSettings, {"run": run, "output": output, **settings}))


def write(settings: CardSettings) -> Path:
    extension.needed("report", "card")
    from bert_tf.extensions.card import card
    from bert_tf.training import sources

    if settings.output is not None and settings.output != PIPE:
        run_layout.refuse_own_file(settings.output, allowed=run_layout.CARD)
    trained = sources.find(settings.run, ModelOverrides(), environment=os.environ, task=settings.task_name)
    if not trained.has_checkpoint:
        why = "export wrote the card of this model, and results of its run are not here"
        raise CheckpointError(f"{settings.run}: {why}; name the run, or export it again with --license and the other flags")
    trained.refuse(trained.task.family)
    is_folder = os.path.isdir(settings.run)
    place = "." if is_folder else os.path.basename(trained.prefix)
    model = card.Model(trained, trained.task, trained.step, settings.credits)
    home = Path(settings.run) if is_folder else Path(trained.prefix).parent
    output = Path(settings.output or home / CARD)
    is_beside = settings.output == PIPE or output.parent.resolve() == home.resolve()
    text = card.render(model, place=place, runs_in="this card" if is_beside else "the model")
    if settings.output == PIPE:
        atomic.write_text("/dev/stdout", text, follows=True)
        return output
    folder = output.parent
    own = folder.resolve() in {trained.folder.resolve(), Path(settings.run).resolve()}
    with lock.writing_folder(folder, instead="name another --output") if own else contextlib.nullcontext():
        if not settings.overwrite and not atomic.is_written_into(output):
            _refuse_edited(output)
        atomic.write_text(output, text, follows=settings.output is not None)
    log.warning("%s: %d places marked %s must be filled in by hand", output, text.count(f"**{card.TODO}**"), card.TODO)
    return output


def _refuse_edited(output: Path) -> None:
    from bert_tf.extensions.card import card

    with contextlib.suppress(FileNotFoundError):
        if card.is_edited(output.read_text(encoding="utf-8", errors="replace")):
            raise OutputError(f"{output}: was edited, or is not a model card; name another --output, or add --overwrite")


def _print(call: Call) -> None:
    path = write(call.settings)
    if str(path) != PIPE and not atomic.is_written_into(path):
        print(path)


COMMAND = Command(
    "Writes the model card of a run (docs/card.md).",
    CardSettings,
    _print,
    example="python -m bert_tf card out/mrpc --license=apache-2.0",
    stopped="stopped; nothing was written",
    log=warnings_only,
)
