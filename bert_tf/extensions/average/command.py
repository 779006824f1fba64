"""Writes the mean of checkpoints as a model: of named ones, or of the newest or best of a run."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bert_tf import extension, run_layout
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, FlagError, unknown_name
from bert_tf.estimator import evaluations, run_folder
from bert_tf.io import documents, files
from bert_tf.io.log_form import log
from bert_tf.io.text_table import counted
from bert_tf.library.keywords import takes
from bert_tf.metrics.values import is_cost, rank
from bert_tf.operations.command import Call, Command
from bert_tf.settings import read_settings, same, setting
from bert_tf.tokenization.tokenizer import read_tokenizer

extension.needed("checkpoint", "average_checkpoints")
from bert_tf.extensions.checkpoint.rewrite import StripSettings  # noqa: E402

_ALL = 1 << 62  # steps
_MORE = "train with --save_checkpoints_steps=100 for more, of which --keep_checkpoint_max=5 are kept"
# Record entries: if they differ, the same weights have different meanings, as if the configuration does.
_OF_TEXTS = ("vocabulary_sha256", "do_lower_case", "max_seq_length", "long_text")
_SAME = (*_OF_TEXTS, "kind", "labels", run_layout.POOLING, run_layout.NORMALIZE)


@dataclasses.dataclass(frozen=True)
class AverageSettings:
    checkpoints: tuple[str, ...] = setting(None, "several checkpoints, or one run", positional=True, required=True)
    output: str = same(StripSettings, "output")
    weights: str | None = setting(None, "weight of each checkpoint, such as 1,2,1; default: equal")
    last: int = setting(0, "average the newest N checkpoints of one run", lowest=0)
    best: int = setting(0, "average the N best checkpoints of one run, by its evaluations during training", lowest=0)
    metric: str | None = setting(None, "metric for --best, or loss; default: the run's own")
    overwrite: bool = same(StripSettings, "overwrite")

    def __post_init__(self) -> None:
        count, flag = len(self.checkpoints), "last" if self.last else "best"
        if self.last and self.best:
            raise FlagError("--last and --best exclude each other: give one of them")
        if self.metric and not self.best:
            raise FlagError("--metric requires --best=N")
        if (self.last or self.best) and count != 1:
            raise FlagError(f"--{flag}: expected the folder of one run, got {count} names")
        if not (self.last or self.best) and count < 2:
            raise FlagError(f"average: expected two or more checkpoints, got {count}; for one run, add --last=N or --best=N")


@takes(AverageSettings)
def average_checkpoints(checkpoints: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **settings: Any) -> Path:
    """Writes the mean of checkpoints as a model that `load` takes; as `python -m bert_tf checkpoint average`.

        bert_tf.fine_tune("MRPC", output_dir="out/mrpc", save_checkpoints_steps=100)
        bert_tf.average_checkpoints("out/mrpc", last=3, output="out/mrpc/last3")

    Args:
      checkpoints: several checkpoints, or one run with `last` or `best`.
      **settings: the command's flags, by name.

    Returns:
      The folder of the model.

    Raises:
      BertError: invalid settings or input.
    """
    names = [checkpoints] if isinstance(checkpoints, (str, os.PathLike)) else checkpoints
    chosen = read_settings(AverageSettings, {"checkpoints": names, **settings})
    average(chosen)
    return Path(chosen.output)


def average(settings: AverageSettings) -> list[str]:
    """Writes the mean of checkpoints as a model; returns their names."""
    from bert_tf.extensions.average import mean
    from bert_tf.extensions.checkpoint import models
    from bert_tf.extensions.checkpoint.tensors import TensorFlowTensors

    checkpoints = _selected_checkpoints(settings)
    shares = _shares(settings.weights, len(checkpoints))
    _refuse_other_meanings(checkpoints)
    with models.folder(settings.output, overwrite=settings.overwrite) as folder:
        models.write_model(folder, mean.mean_weights(checkpoints, shares), beside=Path(checkpoints[-1]).parent)
        models.note(folder, "average", map(TensorFlowTensors, checkpoints), weights=shares)
    log.info("the mean of %d checkpoints is in %s", len(checkpoints), settings.output)
    return checkpoints


def _selected_checkpoints(settings: AverageSettings) -> list[str]:
    folder = Path(settings.checkpoints[0])
    if settings.last or settings.best:
        why = files.missing_folder(folder)
        if why:
            raise CheckpointError(f"{folder}: {why}; --last and --best take the folder of a run")
        return _last(folder, settings.last) if settings.last else _best(folder, settings.best, settings.metric)
    return list(map(_prefix, settings.checkpoints))


def _prefix(name: str) -> str:
    from bert_tf.extensions.checkpoint import models
    from bert_tf.extensions.checkpoint.tensors import HUGGINGFACE

    checkpoint = models.opened(name)
    if checkpoint.layout == HUGGINGFACE:
        raise CheckpointError(f"{name}: a Hugging Face folder; make it a checkpoint first (checkpoint convert --to=tf1)")
    return checkpoint.name


def _last(folder: Path, count: int) -> list[str]:
    by_step = _usable_checkpoints(folder)
    if len(by_step) < count:
        raise CheckpointError(f"{folder}: {counted(len(by_step), 'checkpoint')}, fewer than --last={count}; {_MORE}")
    return [by_step[step] for step in sorted(by_step)[-count:]]


def _best(folder: Path, count: int, metric: str | None) -> list[str]:
    lines = evaluations.read_evaluations(folder, up_to=_ALL)
    if not lines:
        raise CheckpointError(f"{folder}: was not evaluated during training (--eval_every_n_steps), so --best is unknown")
    known = [name.removeprefix("eval_") for name in lines[0] if name != "step"]
    chosen = metric or run_folder.trained(folder).get("best_metric") or known[0]  # the named one, the run's, or its first
    if chosen not in known:
        raise FlagError(f"--metric: {unknown_name('metric', chosen, known)}")
    name = f"eval_{chosen}"
    by_step = {**_usable_checkpoints(folder / run_layout.BEST), **_usable_checkpoints(folder)}
    ranked = sorted(lines, key=lambda line: rank(_worth(line, name), line.get(evaluations.LOSS)), reverse=True)
    steps = [evaluations.step_of(line) for line in ranked[:count]]
    lost = [step for step in steps if step not in by_step]
    if lost:
        best, gone = (", ".join(map(str, sorted(of))) for of in (steps, lost))
        text = f"{folder}: its best evaluations are of step {best}; no checkpoint of {gone} is left"
        raise CheckpointError(f"{text}; train with a higher --keep_checkpoint_max, or name checkpoints")
    if len(steps) < count:
        raise CheckpointError(f"{folder}: {counted(len(steps), 'evaluation')}, fewer than --best={count}; {_MORE}")
    return [by_step[step] for step in sorted(steps)]


def _worth(line: evaluations.Line, name: str) -> float:
    value = line.get(name)
    if value is None:
        return -math.inf
    return -value if is_cost(name) else value


def _usable_checkpoints(folder: Path) -> dict[int, str]:
    from bert_tf.checkpoints import saved

    prefixes = [prefix for prefix in saved.listed(folder) if saved.problem_of(prefix) is None]
    return {int(prefix.rpartition("-")[2]): prefix for prefix in prefixes if prefix.rpartition("-")[2].isdecimal()}


def _shares(text: str | None, count: int) -> list[float] | None:
    if text is None:
        return None
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise FlagError(f"--weights={text}: expected comma-separated numbers, such as 1,2,1") from error
    if len(shares) != count:
        raise FlagError(f"--weights={text}: {len(shares)} numbers for {count} checkpoints")
    if not all(math.isfinite(share) and share >= 0.0 for share in shares) or not sum(shares):
        raise FlagError(f"--weights={text}: weights must be at least 0, and one above 0")
    return shares


def _refuse_other_meanings(checkpoints: Sequence[str]) -> None:
    first, *others = checkpoints
    expected = _meaning(first)
    for other in others:
        meaning = _meaning(other)
        for name in filter(meaning.__contains__, expected):
            if expected[name] != meaning[name]:
                what = name.removesuffix("_sha256").replace("_", " ")
                values = (
                    ""
                    if name.endswith("_sha256")
                    else f" ({documents.to_json(meaning[name])[:80]}; there {documents.to_json(expected[name])[:80]})"
                )
                raise CheckpointError(f"{other}: not the same {what} as {first}{values}: their mean would be meaningless")


def _meaning(checkpoint: str) -> dict[str, Any]:
    from bert_tf.checkpoints.reader import CheckpointReader

    CheckpointReader(checkpoint)  # raises if it is missing
    record = run_folder.trained(Path(checkpoint).parent)
    meaning = {name: record[name] for name in _SAME if name in record}
    config = Path(checkpoint).with_name(run_layout.CONFIG)
    if config.is_file():
        values = dataclasses.asdict(BertConfig.from_json_file(config))
        meaning.update((name, value) for name, value in values.items() if name not in run_folder.OF_TRAINING_ONLY)
    vocabulary = run_layout.vocabulary_in(Path(checkpoint).parent)
    if "vocabulary_sha256" not in meaning and vocabulary.is_file():
        meaning["vocabulary_sha256"] = read_tokenizer(vocabulary).fingerprint
    return meaning


def _print(call: Call) -> None:
    print("".join(f"{checkpoint}\n" for checkpoint in average(call.settings)), end="")


COMMAND = Command(
    "averages checkpoints, or the last or best of a run",
    AverageSettings,
    _print,
    example="python -m bert_tf checkpoint average out/mrpc --last=3 --output=out/mean",
)
