"""Export: converts a trained model for other software, or compares exports with the package."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bert_tf import extension
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.model_names import names_of
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import BertError, FlagError
from bert_tf.extensions.export.formats import FORMATS, OPENERS, ExportOptions, Target
from bert_tf.extensions.export.onnx_folder import FORMAT as ONNX
from bert_tf.io import scratch
from bert_tf.io.text_table import table
from bert_tf.operations.command import Call, Command
from bert_tf.settings import changed, group, same, setting
from bert_tf.tasks import registry

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.batch.trained import Trained

_VECTORS = "STS-B-vectors"  # a task whose head has no variables, of an extension
_EXAMPLES = 400  # of dev, the first ones
_ROWS = 32  # of a batch
_POINTS = 100.0
_OF_KEPT = ("output", "overwrite", "gate_data", "max_loss_of_metric")  # flags of exports that are kept
_HEAD = ("format", "family", "largest difference", "MB", "seconds to open", "metric", "change in points")


@dataclasses.dataclass(frozen=True)
class ExportSettings:
    runs: tuple[str, ...] = setting(
        (),
        "run or checkpoint; several with --format=onnx, whose folder then has them all, and with --compare",
        required=True,
        positional=True,
        refuse_missing=refuse_missing_model,
    )
    format: str | None = same(Target, "format", required=False)
    output: str | None = same(Target, "output", required=False)
    overwrite: bool = same(Target, "overwrite")
    options: ExportOptions = group(ExportOptions)
    task_name: str | None = setting(None, "task of the model, if it has no run_config.json")
    model: ModelOverrides = group(ModelOverrides)
    compare: bool = setting(False, "print how exports of several runs differ from the package instead of keeping them")

    def __post_init__(self) -> None:
        if self.compare:
            if self.format not in (None, *OPENERS):
                known = ", ".join(OPENERS)
                raise FlagError(f"--format={self.format}: cannot be opened here; name {known}, or leave out --compare")
            idle = next((name for name in changed(self) if name in (*_OF_KEPT, *changed(self.options.credits))), None)
            if idle:
                raise FlagError(f"--{idle}: --compare keeps no export, and measures each on dev; leave it out")
        else:
            if len(self.runs) > 1 and self.format not in (None, ONNX):
                raise FlagError(
                    f"--format={self.format}: one run or checkpoint, not {len(self.runs)}; --format={ONNX} takes several"
                )
            for name in ("format", "output"):
                if getattr(self, name) is None:
                    raise FlagError(f"--{name} is required")
            FORMATS[self.format or ""].refuse_idle(self.options)


def export(settings: ExportSettings) -> Path:
    from bert_tf.extensions.export import write as job
    from bert_tf.training import sources

    target = Target(settings.format or "", settings.output or "", settings.overwrite, settings.options)
    FORMATS[target.format].require(target.options.precision)
    names = names_of(settings.runs, "by which the exported models are told apart")
    if len(names) > 1:
        extension.needed("together", "export of several models")
    models = [_found(run, settings.model, settings.task_name) for run in settings.runs]
    for model in models:
        model.refuse(model.task.family)
    find_data = lambda task: str(sources.find_data(task, None, environment=os.environ).folder)  # noqa: E731
    if len(names) > 1:
        from bert_tf.extensions.export import onnx

        return onnx.write_several(dict(zip(names, models)), target, find_data=find_data)
    return job.write(models[0], target, find_data=find_data)


def _found(run: str, overrides: ModelOverrides, task_name: str | None) -> Trained:
    """The model; if it has no head, that of its vectors."""
    from bert_tf.batch.trained import has_head
    from bert_tf.io.log_form import log
    from bert_tf.training import sources

    find = functools.partial(sources.find, run, overrides, environment=os.environ)
    if task_name is None and _VECTORS in registry.known_names():
        model = find(needs_head=False)
        if model.has_checkpoint and not has_head(model.prefix):
            model.warn_of_means("the head of the export")
            log.info("%s has no task head: it is exported for its vectors, as by --task_name=%s", model.prefix, _VECTORS)
            return find(task=_VECTORS)
    return find(task=task_name)


class Comparison(NamedTuple):
    """One export compared with the package."""

    format: str
    kind: str  # of the family
    difference: float | None  # largest of the head's outputs; None without examples
    size_mb: float  # of the folder
    load_s: float  # until ready to compute
    metric: str  # first of the family
    change: float | None  # of the metric, in points


def compare(settings: ExportSettings) -> Iterator[Comparison]:
    """Yields a row per run and format, by default each that has the precision and is installed; deletes the exports."""
    options = dataclasses.replace(settings.options, max_loss_of_metric=math.inf)  # the row tells the loss
    if settings.format:
        FORMATS[settings.format].require(options.precision)
    formats = [settings.format] if settings.format else _installed(options.precision)
    for run in settings.runs:
        model = _found(run, settings.model, settings.task_name)
        model.refuse(model.task.family)
        examples = _examples(model)
        for name in formats:
            with scratch.folder() as folder:
                yield _row(model, examples, Target(name, str(Path(folder) / "exported"), options=options))


def _installed(precision: str) -> list[str]:
    """Formats that have a precision and can be opened here; the log names the others. FlagError if there is none."""
    from bert_tf.io.log_form import log

    having = [name for name in OPENERS if precision in FORMATS[name].precisions]
    installed = []
    for name in having:
        try:
            FORMATS[name].require(precision)
            installed.append(name)
        except FlagError as error:
            log.warning("left out: %s", error)
    if not installed:
        raise FlagError(f"--compare --precision={precision}: needs {' or '.join(having)}, and none is installed; see above")
    return installed


def _row(model: Trained, examples: Sequence[Any], target: Target) -> Comparison:
    import numpy as np

    from bert_tf.batch.engine import computed
    from bert_tf.extensions.export import write as job
    from bert_tf.extensions.export.job import float32_inference
    from bert_tf.features.batching import TO_LONGEST

    folder, name = job.write(model, target), target.format
    start = time.perf_counter()
    compute = OPENERS[name](folder)
    took = time.perf_counter() - start
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    family = model.task.family
    row = Comparison(name, family.kind, None, size, took, family.metrics[0], None)
    if not examples:
        return row
    features = family.features(examples, model.tokenizer, model.limits)
    with contextlib.closing(float32_inference(_ROWS).engine()) as engine:
        engine.load(model)
        ours = engine.outputs(features)
    theirs = computed(model.outputs, features, compute, batch_size=_ROWS, batching=TO_LONGEST)
    values = [
        family.evaluation(family.predictions(outputs, features, examples), examples).metrics for outputs in (ours, theirs)
    ]
    change = (values[1][row.metric] - values[0][row.metric]) * _POINTS
    difference = max(float(np.abs(ours[output] - theirs[output]).max()) for output in ours)
    return row._replace(difference=difference, change=change)


def _examples(model: Trained) -> Sequence[Any]:
    """Dev examples; empty if the files are missing or hold plain text, as for pre-training."""
    from bert_tf.tasks.base import DEV, Unopened
    from bert_tf.tasks.rows_task import RowsTask
    from bert_tf.training import sources

    if isinstance(model.task, RowsTask):
        return ()
    with contextlib.suppress(BertError):
        folder = sources.find_data(model.task, None, environment=os.environ).folder
        examples = model.task.examples(folder, model.task.splits(folder, DEV)[0])
        return () if isinstance(examples, Unopened) else examples[:_EXAMPLES]
    return ()


def _run(call: Call) -> None:
    if not call.settings.compare:
        export(call.settings)
        return
    rows: list[tuple[str, ...]] = []
    try:
        for row in compare(call.settings):
            rows.append(tuple(map(_cell, row)))
    finally:
        if rows:
            sys.stdout.write("".join(f"{line}\n" for line in table(_HEAD, rows, left=(0, 1, 5))))


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


COMMAND = Command(
    "Exports a trained model to other formats, such as SavedModel or ONNX (docs/export.md).",
    ExportSettings,
    _run,
    example="python -m bert_tf export out/mrpc --format=saved_model --output=out/mrpc-served",
    first=("format", "output", "precision", "compare", "overwrite"),
    stopped="stopped; nothing was written",
)
