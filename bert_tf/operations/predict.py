"""Predict: files of any size with one checkpoint, or a pipe."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bert_tf import extension
from bert_tf.batch import job
from bert_tf.batch.file_pairs import FilePair, output_form, refuse_clashes
from bert_tf.batch.job import Columns, ModelOverrides, Rules, as_trained
from bert_tf.checkpoints.prefixes import refuse_missing_models, several
from bert_tf.errors import FlagError
from bert_tf.io import files
from bert_tf.io.files import PIPE
from bert_tf.io.log_form import log
from bert_tf.library.keywords import Arguments, Beam, Written, run_pipeline, runner, takes, written
from bert_tf.operations.command import Call, Command, checkpoint_first
from bert_tf.settings import MOST_EXAMPLES, group, read_settings, refuse_taken, setting, settings_of, values_of
from bert_tf.tasks.names import FORMATS, JSONL
from bert_tf.training.settings import MachineSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.batch.engine import InferenceOptions
    from bert_tf.batch.inputs import Inputs
    from bert_tf.batch.trained import Trained

_ENDS = {"input", "output", "job", "help", "h"}
_OF_PIPE = {"input": PIPE, "output": PIPE, "file_format": JSONL, "output_format": JSONL}
_MACHINE = tuple(row.name for row in settings_of(MachineSettings))


@dataclasses.dataclass(frozen=True)
class PredictSettings:
    input: str | None = setting(
        None,
        "file to predict, in the format of the task's test split or with columns as of --text_a; - for a pipe",
        refuse_missing=files.refuse_missing,
    )
    output: str | None = setting(None, "predictions: .tsv, .csv or .jsonl, also with .gz; default: TSV; - for a pipe")
    job: str | None = setting(None, "YAML or JSON job file; flags override it", refuse_missing=files.refuse_missing)
    checkpoint: str = setting(
        None,
        "checkpoint, or folder of a run (its best, else newest checkpoint); several with commas compute equal layers once, each"
        " into a file of its own, predictions-RUN.tsv",
        required=True,
        refuse_missing=refuse_missing_models,
    )
    average_outputs: bool = setting(
        False, "predict with the mean of the outputs of all checkpoints that --checkpoint='RUN/fold-*' matches"
    )
    task_name: str | None = setting(None, "task of the model, if it has no run_config.json")
    predict_batch_size: int | None = setting(
        None, "batch size per device; default: by length and GPU memory", lowest=1, highest=MOST_EXAMPLES
    )
    skip_bad_rows: bool = setting(False, "skip unusable rows instead of stopping at the first")
    keep_columns: bool = setting(False, "also write the input columns, after the predictions")
    output_format: str | None = setting(None, f"{', '.join(FORMATS)}; default: by the suffix of the output", choices=FORMATS)
    columns: Columns = group(Columns, **as_trained())
    rules: Rules = group(Rules)
    model: ModelOverrides = group(ModelOverrides)
    machine: MachineSettings = group(MachineSettings)
    files: tuple[FilePair, ...] = ()  # of `input` and `output`, else of the job file

    @classmethod
    def complete(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Adds the files, and the settings of the job file."""
        keys = job.with_job(
            cls, values, lists={"files": functools.partial(job.read_entry, FilePair)}, without=("input", "output", *_MACHINE)
        )
        ends = [name for name in ("input", "output") if name in values]
        if len(ends) == 1:
            raise FlagError(f"--{ends[0]} needs the other of --input and --output")
        if ends:
            keys["files"] = (FilePair(values["input"], values["output"]),)
        elif "job" not in values:
            raise FlagError("--input and --output are required, or --job=FILE")
        elif "files" not in keys:
            raise FlagError(f"{values['job']}: files is required")
        keys["files"] = tuple(pair.with_pipes(keys.get("output_format")) for pair in keys["files"])
        return keys


refuse_taken(PredictSettings, {name: one.of_tasks for name, one in extension.installed().items()})


@takes(PredictSettings)
def predict_files(*, beam: Arguments = False, **settings: Any) -> tuple[Written, ...]:
    """Predicts files of any size; as `python -m bert_tf predict`. For rows in memory use `Model.predict`.

        bert_tf.predict_files(checkpoint="out/mrpc", input="rows.tsv", output="predictions.tsv")

    Args:
      beam: arguments of Apache Beam, to run as a pipeline; True for none.
      **settings: the command's flags, by name.

    Returns:
      The files of predictions; with Beam the shards, as strings if they lie on another file system.

    Raises:
      BertError: invalid settings or input.
    """
    by = runner(beam)
    return written(predict(read_settings(PredictSettings, settings), by))


def predict(settings: PredictSettings, beam: Beam | None = None) -> tuple[str, ...]:
    """Predicts all files; returns the files, the shards of a pipeline."""
    if beam is not None:
        shards: tuple[str, ...] = run_pipeline("predict", settings, beam)
        return shards

    if len(several(settings.checkpoint)) > 1:
        several_models = next((one.predicts_several for one in extension.installed().values() if one.predicts_several), "")
        if not several_models:
            raise FlagError("--checkpoint: several models need the extension together, which is missing (docs/extensions.md)")
        return tuple(pair.output for pair in extension.load(several_models)(settings))
    with writing(settings.files):
        return tuple(pair.output for pair in _run_here(settings))


@contextlib.contextmanager
def writing(pairs: Sequence[FilePair]) -> Iterator[None]:
    """Refuses files that cannot be written, and writes into folders of runs as their owner."""
    from bert_tf.estimator import run_folder

    for pair in pairs:
        output_form(pair.output, pair.output_format)  # rejects unsupported names
    refuse_clashes(pairs)
    folders = (os.path.dirname(pair.output) for pair in pairs if pair.output != PIPE)
    with run_folder.writing_where_a_run_is(folders):
        yield


def _run_here(settings: PredictSettings) -> list[FilePair]:
    from bert_tf.batch import average, stream
    from bert_tf.batch.session import Predictor
    from bert_tf.training import batch_machine

    models, reads = opened(settings)
    prefixes = [model.prefix for model in models]
    inference = batch_machine.inference(
        settings.machine, settings.predict_batch_size, environment=os.environ, checkpoints=prefixes
    )
    decisive = determining(settings, inference, models, reads)
    if settings.average_outputs:
        inference = average.averaging(models, inference)
    with contextlib.closing(Predictor(models[0], reads.family, inference)) as predictor:
        predictor.load_weights()
        predict_one = functools.partial(stream.predict, inputs=reads, predictor=predictor, settings=decisive)
        return stream.predict_each(settings.files, predict_one, skip_empty=settings.skip_bad_rows)


def opened(settings: PredictSettings) -> tuple[Sequence[Trained], Inputs]:
    from bert_tf.batch import inputs
    from bert_tf.tasks.registry import canonical_name
    from bert_tf.tasks.settings import CUSTOM

    name = settings.task_name
    task = None if name is None or canonical_name(name) == CUSTOM else name  # only a record describes the user's own data
    models = _models(settings, task)
    reads = inputs.inputs(
        models[0],
        settings.columns,
        task_name=name,
        skip_bad_rows=settings.skip_bad_rows,
        keep_columns=settings.keep_columns,
        rules=settings.rules,
    )
    labels = reads.family.labels
    learned = f"labels {', '.join(labels)}" if labels else reads.family.kind
    for model in models:
        log.info("%s: %s; max length %d", model.prefix, learned, model.max_seq_length)
    return models, reads


def _models(settings: PredictSettings, task: str | None) -> Sequence[Trained]:
    from bert_tf.batch import average
    from bert_tf.training import sources

    if not settings.average_outputs:
        return [sources.find(settings.checkpoint, settings.model, environment=os.environ, task=task)]
    models = sources.find_all(settings.checkpoint, settings.model, environment=os.environ, task=task)
    if len(models) == 1:
        raise FlagError(f"--average_outputs: {settings.checkpoint} is one checkpoint; name several, such as 'RUN/fold-*'")
    return average.comparable(models)


def determining(
    settings: PredictSettings, inference: InferenceOptions, models: Sequence[Trained], reads: Inputs
) -> dict[str, Any]:
    """Everything but the input that affects the bytes of the output."""
    from bert_tf.batch.inputs import CHUNK
    from bert_tf.tasks.families import rules_of

    return {
        **models[0].settings,
        **({"average_of": [model.digest for model in models]} if len(models) > 1 else {}),
        "task_name": reads.published.name if reads.published else None,
        **reads.family.record(),
        **rules_of(reads.family),
        "columns": values_of(settings.columns),
        "skip_bad_rows": settings.skip_bad_rows,
        **({"keep_columns": True} if settings.keep_columns else {}),  # earlier outputs stay valid
        "predict_batch_size": settings.predict_batch_size,
        "precision": inference.precision,
        "chunk": CHUNK,
    }


def _rewritten(argv: Sequence[str]) -> list[str]:
    """Reads predict FOLDER as --checkpoint=FOLDER; without files it takes JSON Lines from a pipe, and writes them to one."""
    words = checkpoint_first(argv)
    names = {word.lstrip("-").partition("=")[0] for word in _with_flagfiles(words) if word.startswith("-")}
    if words == list(argv) or names & _ENDS or sys.stdin.isatty():
        return words
    return [*words, *(f"--{name}={value}" for name, value in _OF_PIPE.items() if name not in names)]


def _with_flagfiles(words: Sequence[str], above: Sequence[str] = ()) -> Iterator[str]:
    """The words, and the lines of files that --flagfile names; `above` are the files that these are in."""
    for word, after in zip(map(str.strip, words), [*words[1:], ""]):
        yield word
        name, equals, path = word.lstrip("-").partition("=")
        path = os.path.expanduser(path if equals else after)
        if word.startswith("-") and name == "flagfile" and path not in above:
            text = ""
            with contextlib.suppress(OSError, UnicodeDecodeError):  # reported when the flags are read
                text = files.read_text(path)
            yield from _with_flagfiles(text.split("\n"), [*above, path])


def _run(call: Call) -> None:
    predict(call.settings, call.beam)


COMMAND = Command(
    "Predicts files or pipes of any size with a trained model (docs/batch_jobs.md).",
    PredictSettings,
    _run,
    example="python -m bert_tf predict out/mrpc --input=test.csv --output=predictions.csv",
    rewrite=_rewritten,
    first=("checkpoint", "input", "output", "keep_columns", "engine"),
    stopped="stopped; the same command continues; pipes and --beam start over",
    pipeline="predict",
)
