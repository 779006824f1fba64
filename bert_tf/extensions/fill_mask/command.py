"""Fill-mask: predicts words for [MASK] in a text or the texts of a file."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.batch.file_pairs import FilePair, output_form, refuse_clashes
from bert_tf.batch.job import TEXT_FILES, Columns, ModelOverrides, extension_columns
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import FlagError
from bert_tf.head_spec import BEST_WORDS
from bert_tf.io import files
from bert_tf.io.files import PIPE
from bert_tf.io.log_form import log
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import MOST_EXAMPLES, changed, group, read_settings, setting, setting_names, values_of
from bert_tf.tasks import names
from bert_tf.training.settings import MachineSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.batch.engine import InferenceOptions
    from bert_tf.batch.trained import Trained
    from bert_tf.extensions.fill_mask.filler import FileFiller, Filled, WordFiller

_LENGTH = {"help": "maximum input length in word pieces; default: as trained, or the model's maximum"}


@dataclasses.dataclass(frozen=True)
class FillerSettings:
    """How a model fills in words; other engines than TensorFlow have one output, not several."""

    batch_size: int | None = setting(None, "batch size; default: by length and GPU memory", lowest=1, highest=MOST_EXAMPLES)
    model: ModelOverrides = group(ModelOverrides, without=("long_text",), max_seq_length=_LENGTH)
    machine: MachineSettings = group(MachineSettings, without=("engine",))


@dataclasses.dataclass(frozen=True)
class FillMaskSettings:
    checkpoint: str = setting(
        None, "run, checkpoint or Hugging Face folder", required=True, positional=True, refuse_missing=refuse_missing_model
    )
    text: str | None = setting(None, "text with one or more [MASK]; the words are printed")
    input: str | None = setting(
        None, "texts with [MASK]: one per line, or .tsv, .csv, .jsonl; - for a pipe", refuse_missing=files.refuse_missing
    )
    output: str | None = setting(None, "JSON lines: .jsonl or .jsonl.gz; - for a pipe", written=True)
    top: int = setting(5, f"words per [MASK], most probable first; up to {BEST_WORDS}", lowest=1, highest=BEST_WORDS)
    skip_bad_rows: bool = setting(False, "skip unusable rows instead of stopping at the first")
    columns: Columns = group(Columns, without=("text_b", *setting_names(extension_columns())), file_format=TEXT_FILES)
    filler: FillerSettings = group(FillerSettings)

    def __post_init__(self) -> None:
        if (self.text is None) == (self.input is None):
            raise FlagError("give exactly one of --text and --input")
        if (self.input is None) != (self.output is None):
            raise FlagError("--input and --output go together; the words of --text are printed")
        of_files = [*changed(self.columns), *["skip_bad_rows"] * self.skip_bad_rows]
        if self.text is not None and of_files:
            raise FlagError(f"--{of_files[0]}: is for the rows of --input; leave it out")

    @property
    def files(self) -> FilePair:
        return FilePair(self.input or "", self.output or "", names.JSONL).with_pipes()


@takes(FillerSettings)
def word_filler(checkpoint: str | os.PathLike[str], **settings: Any) -> WordFiller:
    """Returns a filler of masked words from a pre-training run or a pretrained model with a masked-LM head.

    Args:
      checkpoint: a checkpoint, a run, or a Hugging Face folder.
      **settings: model settings such as `max_seq_length`, `batch_size`, `precision` and device settings, by the flag
        names of `python -m bert_tf fill-mask`.

    Raises:
      CheckpointError: the model or one of its files is missing or damaged.
      FlagError: a setting is unknown or invalid.
    """
    from bert_tf.extensions.fill_mask.filler import WordFiller

    model, inference = _model(checkpoint, read_settings(FillerSettings, settings))
    return WordFiller(model.anchored, inference)


@takes(FillMaskSettings)
def fill_mask(checkpoint: str | os.PathLike[str], **settings: Any) -> tuple[Filled, ...] | Path:
    """Fills in masked words of a text or file; as `python -m bert_tf fill-mask`. For many texts use `word_filler`.

        bert_tf.fill_mask("out/pretraining", text="Paris is the [MASK] of France.")[0].words

    Args:
      checkpoint: a checkpoint, a run, or a Hugging Face folder.
      **settings: the command's flags, by name.

    Returns:
      The masks of the text, see `WordFiller.fill_mask`; for files the output path.

    Raises:
      BertError: invalid settings or input.
    """
    checked = read_settings(FillMaskSettings, {"checkpoint": checkpoint, **settings})
    masks = fill(checked)
    return masks if checked.output is None else Path(checked.output)


def fill(settings: FillMaskSettings) -> tuple[Filled, ...]:
    """Fills in a text, or each text of a file; the result is empty for a file, whose words are in its output."""
    if settings.text is None:
        _fill_files(settings)
        return ()
    from bert_tf.extensions.fill_mask.filler import refuse_unusable
    from bert_tf.tasks.sentence.rows import SentenceExample

    texts = [SentenceExample("text", settings.text)]
    refuse_unusable(texts, "--text")
    with _opened(settings) as filler:
        (filled,) = filler.fill_mask([settings.text], settings.top)
    return filled


def _fill_files(settings: FillMaskSettings) -> None:
    from bert_tf.batch import stream
    from bert_tf.estimator import run_folder
    from bert_tf.extensions.fill_mask.filler import MaskedTextInputs

    files = settings.files
    if files.output != PIPE and output_form(files.output, None).form != names.JSONL:
        raise FlagError(f"--output={files.output}: words are written as JSON lines; name it .jsonl or .jsonl.gz")
    refuse_clashes([files])
    folders = [] if files.output == PIPE else [os.path.dirname(files.output)]
    with run_folder.writing_where_a_run_is(folders), _opened(settings) as filler:
        reads = MaskedTextInputs(settings.columns, settings.skip_bad_rows, tokenizer=filler.trained.tokenizer)
        stream.predict(files, reads, filler, _determining(settings, filler))


@contextlib.contextmanager
def _opened(settings: FillMaskSettings) -> Iterator[FileFiller]:
    from bert_tf.extensions.fill_mask.filler import FileFiller
    from bert_tf.tokenization.vocabulary import MASK

    model, inference = _model(settings.checkpoint, settings.filler)
    log.info("%s: texts are read up to %d word pieces", model.prefix, model.max_seq_length)
    with contextlib.closing(FileFiller(model, inference, settings.top)) as filler:
        filler.load_weights()
        yield filler
        if filler.truncated:
            log.info("texts of more than %d word pieces, read around each %s: %d", model.max_seq_length, MASK, filler.truncated)


def _model(checkpoint: str | os.PathLike[str], settings: FillerSettings) -> tuple[Trained, InferenceOptions]:
    """Finds a model; its maximum text length is that of training, else its number of positions."""
    from bert_tf.training import batch_machine, sources

    model = sources.find(checkpoint, settings.model, environment=os.environ, needs_head=False)
    if settings.model.max_seq_length is None and model.record.get("max_seq_length") is None:
        model = dataclasses.replace(model, max_seq_length=model.config.max_position_embeddings)
    return model, batch_machine.inference(
        settings.machine, settings.batch_size, environment=os.environ, checkpoints=[model.prefix]
    )


def _determining(settings: FillMaskSettings, filler: FileFiller) -> dict[str, Any]:
    """Everything but the input that affects the bytes of the output."""
    from bert_tf.batch.inputs import CHUNK

    return {
        **filler.trained.settings,
        "columns": values_of(settings.columns),
        "skip_bad_rows": settings.skip_bad_rows,
        "top": settings.top,
        "batch_size": settings.filler.batch_size,
        "precision": filler.inference.precision,
        "chunk": CHUNK,
    }


def _run(call: Call) -> None:
    for start, end, words in fill(call.settings):
        sys.stdout.write(f"characters {start} to {end}\n")
        sys.stdout.writelines(f"  {probability:.4f}  {piece}\n" for piece, probability in words)


COMMAND = Command(
    "Fills in masked words in a text, files or pipes (docs/fill_mask.md).",
    FillMaskSettings,
    _run,
    example='python -m bert_tf fill-mask out/pretraining --text="Paris is the [MASK] of France."',
    first=("text", "top", "input", "output", "text_a"),
    stopped="stopped; the same command continues; pipes start over",
)
