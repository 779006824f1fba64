"""Encode: turns texts of files of any size, or of a program, into vectors."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import extras, run_layout
from bert_tf.batch.file_pairs import FilePair, expanded, refuse_clashes
from bert_tf.batch.job import TEXT_FILES, Columns, ModelOverrides, extension_columns
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import FlagError
from bert_tf.extensions.vectors.files import (
    ARRAYS,
    DTYPES,
    FLOAT32,
    FORMATS,
    JSONL,
    NPY,
    PARQUET,
    PUBLISHED,
    AnyForm,
    ArrayForm,
    JsonForm,
    PublishedForm,
    form_of,
)
from bert_tf.extensions.vectors.options import VectorOptions
from bert_tf.io import atomic, files
from bert_tf.io.files import PIPE
from bert_tf.io.log_form import log
from bert_tf.library.keywords import Arguments, Beam, Written, run_pipeline, runner, takes, written
from bert_tf.operations.command import Call, Command, checkpoint_first
from bert_tf.settings import MOST_EXAMPLES, group, read_settings, same, setting, setting_names, values_of
from bert_tf.training.settings import MachineSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.batch.engine import InferenceOptions
    from bert_tf.batch.texts import TextInputs
    from bert_tf.batch.trained import Trained
    from bert_tf.extensions.vectors.text_encoder import Encoder, TextEncoder

_CHUNK_OF_TOKENS = 64  # texts computed together with --tokens: a thousand would fill the memory
_LENGTH = {"help": "maximum input length in word pieces; default: as trained, the model's own limit, or 128"}


@dataclasses.dataclass(frozen=True)
class EncoderSettings:
    """How a model encodes texts."""

    batch_size: int | None = setting(None, "batch size; default: by length and GPU memory", lowest=1, highest=MOST_EXAMPLES)
    model: ModelOverrides = group(ModelOverrides, max_seq_length=_LENGTH)
    machine: MachineSettings = group(MachineSettings)


@dataclasses.dataclass(frozen=True)
class EncodeSettings:
    input: str = setting(
        None,
        "one text per line (a pair: text ||| text), or .tsv, .csv, .jsonl, .parquet; a pattern for several files; - for a pipe",
        required=True,
        refuse_missing=files.refuse_missing,
    )
    output: str = setting(
        None,
        "vectors: .npy, .npz, .parquet, .jsonl or .jsonl.gz; a folder for one file each; - for a pipe of JSON lines",
        required=True,
    )
    checkpoint: str | None = setting(
        None,
        "checkpoint, run, Hugging Face folder or name; default: $BERT_BASE_DIR or the default checkpoint",
        refuse_missing=refuse_missing_model,
    )
    options: VectorOptions = group(VectorOptions)
    output_format: str | None = setting(None, f"{', '.join(FORMATS)}; default: by the suffix of the output", choices=FORMATS)
    dtype: str = setting(FLOAT32, f"number type of .npy, .npz and .parquet: {', '.join(DTYPES)}", choices=DTYPES)
    batch_size: int | None = same(EncoderSettings, "batch_size")
    skip_bad_rows: bool = setting(False, "skip unusable rows instead of stopping at the first")
    columns: Columns = group(Columns, without=setting_names(extension_columns()), file_format=TEXT_FILES)
    model: ModelOverrides = group(ModelOverrides, max_seq_length=_LENGTH)
    machine: MachineSettings = group(MachineSettings)

    @property
    def files(self) -> FilePair:
        return FilePair(self.input, self.output, self.output_format).with_pipes()

    @property
    def kind(self) -> str:
        """The output's format; raises FlagError if it is unknown or other settings contradict it."""
        kind = form_of(self.files.output, self.output_format).kind
        if kind not in ARRAYS and self.dtype != FLOAT32:
            raise FlagError(f"--dtype={self.dtype} is for .npy, .npz and .parquet; {kind} has decimal digits")
        if kind == NPY and self.options.tokens:
            raise FlagError(f"--tokens: {NPY} cannot store where a text begins; name the output .npz, .parquet or .jsonl")
        if kind == PUBLISHED and self.options.normalize:
            raise FlagError(f"--normalize: --output_format={PUBLISHED} has the encoder's vectors unchanged")
        if (kind == PUBLISHED or self.options.tokens) and self.options.pooling is not None:
            raise FlagError(f"--pooling={self.options.pooling}: each token has a vector of its own; leave it out")
        if kind == PARQUET and importlib.util.find_spec("pyarrow") is None:
            raise FlagError(f"{self.output}: Parquet needs pyarrow: {extras.install('parquet')}, or name the output .npz")
        return kind

    def of_file(self, pair: FilePair) -> EncodeSettings:
        options = self.options
        if form_of(pair.output, pair.output_format).kind == PUBLISHED:
            options = dataclasses.replace(options, tokens=True)
        return dataclasses.replace(self, input=pair.input, output=pair.output, options=options)


@takes(EncoderSettings)
def encoder(checkpoint: str | os.PathLike[str] | None = None, **settings: Any) -> Encoder:
    """Returns an encoder of texts; a pretrained model is enough.

    Args:
      checkpoint: a checkpoint, a run, or a Hugging Face folder; else that of $BERT_BASE_DIR, else the default one.
      **settings: model settings such as `max_seq_length`, `batch_size`, `precision` and device settings, by the flag
        names of `python -m bert_tf encode`.

    Raises:
      CheckpointError: the model or one of its files is missing or damaged.
      FlagError: a setting is unknown or invalid.
    """
    from bert_tf.extensions.vectors.text_encoder import Encoder

    checked = read_settings(EncoderSettings, settings)
    model, inference = _model(checkpoint, checked)
    return Encoder(model.anchored, inference)


@takes(EncodeSettings)
def encode_file(*, beam: Arguments = False, **settings: Any) -> Path | tuple[Written, ...]:
    """Writes the vectors of the texts in files; as `python -m bert_tf encode`. For texts in memory use `encoder`.

        bert_tf.encode_file(input="texts.txt", output="vectors.npz")

    Args:
      beam: arguments of Apache Beam, to run as a pipeline; True for none.
      **settings: the command's flags, by name.

    Returns:
      The file of vectors, or the folder if there are several inputs; with Beam the shards, as strings if they lie on
      another file system.

    Raises:
      BertError: invalid settings or input.
    """
    by = runner(beam)
    checked = read_settings(EncodeSettings, settings)
    files = written(encode(checked, by))
    return Path(checked.output) if by is None else files


def encode(settings: EncodeSettings, beam: Beam | None = None) -> tuple[str, ...]:
    """Writes the vectors of each file; returns the files, the shards of a pipeline."""
    from bert_tf.batch import stream
    from bert_tf.estimator import run_folder

    if beam is not None:
        shards: tuple[str, ...] = run_pipeline("encode", settings, beam)
        return shards
    each = [settings.of_file(pair) for pair in pairs(settings)]
    for of_file in each:
        _refuse_pipe(of_file.output, of_file.kind)
        refuse_clashes([of_file.files])
    first = each[0]
    with run_folder.writing_where_a_run_is([os.path.dirname(first.output)]), contextlib.closing(opened(first)) as encoder:
        predict_one = functools.partial(
            stream.predict,
            inputs=inputs(first),
            predictor=encoder,
            settings=_determining(first, encoder),
            form=form(first, encoder.trained),
        )
        done = stream.predict_each([of_file.files for of_file in each], predict_one, skip_empty=first.skip_bad_rows)
        _warn_of_cut_texts(encoder)
    return tuple(pair.output for pair in done)


def pairs(settings: EncodeSettings) -> list[FilePair]:
    kind = settings.output_format
    return expanded(settings.files, JSONL if kind == PUBLISHED else kind)


def _refuse_pipe(output: str, kind: str) -> None:
    if kind not in ARRAYS:
        return
    is_pipe = output == PIPE
    if not is_pipe:
        with atomic.readable_errors(Path(output)):
            is_pipe = atomic.is_written_into(output)
    if is_pipe:
        raise FlagError(f"--output={output}: {kind} has its size at the start or end, so a pipe cannot take it; name a file")


def opened(settings: EncodeSettings) -> TextEncoder:
    from bert_tf.extensions.vectors.text_encoder import TextEncoder

    return TextEncoder(*_model(settings.checkpoint, settings), settings.options)


def _model(
    checkpoint: str | os.PathLike[str] | None, settings: EncoderSettings | EncodeSettings
) -> tuple[Trained, InferenceOptions]:
    from bert_tf.training import batch_machine, sources

    model = sources.find(checkpoint, settings.model, environment=os.environ, needs_head=False)
    left_out = model.record.get(run_layout.LEFT_OUT)
    if left_out:
        log.warning("%s: sentence-transformers also %s, which is not done here (docs/vectors.md)", model.prefix, left_out)
    return model, batch_machine.inference(
        settings.machine, settings.batch_size, environment=os.environ, checkpoints=[model.prefix]
    )


def inputs(settings: EncodeSettings) -> TextInputs:
    from bert_tf.batch.texts import TextInputs

    return TextInputs(settings.columns, settings.skip_bad_rows, _chunk(settings.options))


def form(settings: EncodeSettings, model: Trained) -> AnyForm:
    form, options = form_of(settings.output, settings.output_format), settings.options
    if form.kind == JSONL:
        return JsonForm(form.compressed)
    if form.kind == PUBLISHED:
        return PublishedForm(options.layers, form.compressed, numbered=settings.columns.id_column is None)
    return ArrayForm(form.kind, settings.dtype, options.width(model.config), _encoding(settings, model))


def _chunk(options: VectorOptions) -> int:
    from bert_tf.batch.inputs import CHUNK

    return _CHUNK_OF_TOKENS if options.tokens else CHUNK


def _encoding(settings: EncodeSettings, model: Trained) -> dict[str, Any]:
    options = dataclasses.asdict(settings.options.of_model(model))
    return {"checkpoint": os.path.abspath(model.prefix), **model.settings, **options, "dtype": settings.dtype}


def _determining(settings: EncodeSettings, encoder: TextEncoder) -> dict[str, Any]:
    """Everything but the input that affects the bytes of the output."""
    return {
        **_encoding(settings, encoder.trained),
        "columns": values_of(settings.columns),
        "skip_bad_rows": settings.skip_bad_rows,
        "batch_size": settings.batch_size,
        "precision": encoder.inference.precision,
        "chunk": _chunk(settings.options),
    }


def _warn_of_cut_texts(encoder: TextEncoder) -> None:
    if encoder.truncated:
        model = encoder.trained
        log.warning(
            "texts truncated to %d word pieces: %d; --max_seq_length can be up to %d",
            *(model.max_seq_length, encoder.truncated, model.config.max_position_embeddings),
        )


def _run(call: Call) -> None:
    encode(call.settings, call.beam)


COMMAND = Command(
    "Embeds texts, from files or pipes of any length (docs/vectors.md).",
    EncodeSettings,
    _run,
    example="python -m bert_tf encode --input=texts.txt --output=vectors.npz",
    first=("input", "output", "checkpoint", "pooling", "text_a"),
    rewrite=checkpoint_first,
    stopped="stopped; the same command continues; pipes and --beam start over",
    pipeline="encode",
)
