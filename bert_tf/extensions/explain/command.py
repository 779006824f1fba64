"""Explain: how much each word of a text contributed to a prediction."""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import TYPE_CHECKING, Any

from bert_tf.batch.job import ModelOverrides
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import FlagError
from bert_tf.extensions.explain.explanation import INTEGRATED_GRADIENTS, METHODS, MOST_STEPS, STEPS, refuse_idle
from bert_tf.io import documents
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command, warnings_only
from bert_tf.settings import Setting, changed, group, read_settings, setting
from bert_tf.training.settings import MachineSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.extensions.explain.explanation import Explanation


@dataclasses.dataclass(frozen=True)
class ExplainSettings:
    checkpoint: str = setting(None, "run or checkpoint", required=True, positional=True, refuse_missing=refuse_missing_model)
    text: str | None = setting(None, "text, first text of a pair, or question")
    text_b: str | None = setting(None, "second text, or the text that holds the answer")
    row: str | None = setting(None, "instead of texts: a row as JSON, as for `serve`; needed for multiple choice")
    method: str = setting(INTEGRATED_GRADIENTS, f"how words are scored: {', '.join(METHODS)}", choices=METHODS)
    label: str | None = setting(None, "label, tag or option number to explain; default: the predicted one")
    word: int | None = setting(
        None, "token classification: number of the word, from 0; default: the first not tagged O", lowest=0
    )
    steps: int = setting(
        STEPS,
        f"minimum number of integration points, doubled until scores are complete to 1 %, at most {MOST_STEPS}",
        lowest=1,
        highest=MOST_STEPS,
    )
    task_name: str | None = setting(None, "task of the model, if it has no run_config.json")
    model: ModelOverrides = group(ModelOverrides)
    machine: MachineSettings = group(MachineSettings, without=("engine", "precision"))

    def __post_init__(self) -> None:
        if (self.text is None) == (self.row is None):
            raise FlagError("give exactly one of --text and --row")
        if self.text_b is not None and self.text is None:
            raise FlagError("--text_b is the second text; give the first with --text")
        refuse_idle(self.method, self.steps)

    @property
    def example(self) -> Any:
        """The row, as `Model.explain` takes it."""
        if self.row is None:
            return self.text if self.text_b is None else (self.text, self.text_b)
        try:
            return documents.json_value(self.row)
        except documents.DocumentError as error:
            raise FlagError(f"--row: {error}") from error


@takes(ExplainSettings)
def explain(checkpoint: str | os.PathLike[str], **settings: Any) -> Explanation:
    """Explains the prediction for one row; as `python -m bert_tf explain`. For many rows use `Model.explain`.

        bert_tf.explain("out/mrpc", text="He left.", text_b="He went away.").scores

    Args:
      checkpoint: a run or a checkpoint.
      **settings: the command's flags, by name.

    Returns:
      `words`, `scores` and `completeness_error`; see `Explanation`.

    Raises:
      BertError: invalid settings or input.
    """
    return _explain(read_settings(ExplainSettings, {"checkpoint": checkpoint, **settings}))


def _explain(settings: ExplainSettings) -> Explanation:
    from bert_tf.library.loading import load

    row, overrides = settings.example, {**changed(settings.model), **changed(settings.machine)}
    with load(settings.checkpoint, task=settings.task_name, **overrides) as model:
        options = {name: getattr(settings, name) for name in ("method", "label", "word", "steps")}
        explanations: list[Explanation] = model.explain([row], **options)
    return explanations[0]


def _run(call: Call) -> None:
    explanation = _explain(call.settings)
    if call.own["json"]:
        sys.stdout.write(documents.to_json(dataclasses.asdict(explanation)) + "\n")
        return
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    sys.stdout.write(explanation.in_colours() if coloured else str(explanation))


COMMAND = Command(
    "Shows how much each word contributed to a prediction (docs/explain.md).",
    ExplainSettings,
    _run,
    example='python -m bert_tf explain out/mrpc --text="He left." --text_b="He went away."',
    first=("text", "text_b", "row", "method", "label"),
    own=(Setting("json", bool, False, "print one JSON object"),),
    log=warnings_only,
)
