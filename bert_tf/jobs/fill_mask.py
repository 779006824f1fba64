"""Fills in masked words of a text or of the texts of a file, from settings to words."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any

from bert_tf.batch import inputs, output_form, stream, trained
from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.job import FilePair, Given
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import DataError, FlagError
from bert_tf.estimator import run_folder
from bert_tf.filling import masked_text
from bert_tf.filling.word_filler import Filled, WordFiller
from bert_tf.jobs import batch_machine, sources
from bert_tf.jobs.fill_mask_config import FillMaskConfig
from bert_tf.log_form import log
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tokenization.vocabulary import MASK
from bert_tf.vectors.texts import TextInputs


def fill_mask(config: FillMaskConfig, *, environment: Mapping[str, str]) -> tuple[Filled, ...]:
    """Fills in a text, or each text of a file; the result is empty for a file, whose words are in its output."""
    if config.text is not None:
        texts = [SentenceExample("text", config.text)]
        refuse_unusable(texts, "--text")
        with _opened(config, environment) as (filler, _):
            (found,) = filler.filled(filler.read(texts), texts, config.top)
        return found
    if config.files is not None:
        _fill_files(config, _completed(config.files), environment)
    return ()


def _fill_files(config: FillMaskConfig, files: FilePair, environment: Mapping[str, str]) -> None:
    _refuse_contradictions(files)
    reads = MaskedTextInputs(config.columns, config.skip_bad_rows)
    folders = [] if files.output == stream.PIPE else [os.path.dirname(files.output)]
    with run_folder.writing_where_a_run_is(folders), _opened(config, environment) as (filler, deciding):
        stream.predict(files, reads, filler, deciding)


@contextlib.contextmanager
def _opened(config: FillMaskConfig, environment: Mapping[str, str]) -> Iterator[tuple[WordFiller, dict[str, Any]]]:
    """Yields a loaded model and everything but the input that affects the bytes of the output."""
    model = find(config.checkpoint, config.model, environment=environment)
    log.info("%s: texts are read up to %d word pieces", model.prefix, model.max_seq_length)
    inference = batch_machine.inference(config.machine, config.batch_size, environment=environment)
    with contextlib.closing(WordFiller(model, inference, config.top)) as filler:
        yield filler, _deciding(config, inference, model)
        if filler.truncated:
            log.info("texts of more than %d word pieces, read around each %s: %d", model.max_seq_length, MASK, filler.truncated)


def find(checkpoint: str | os.PathLike[str], given: Given, *, environment: Mapping[str, str]) -> Trained:
    """Loads a model by name; its maximum text length is that of training, else its number of positions."""
    prefix = str(sources.checkpoint_of(checkpoint, environment=environment))
    CheckpointReader(prefix)  # what is beside a checkpoint is missing too where there is none
    said = trained.described(prefix, given)
    if given.max_seq_length is None and said.record.get("max_seq_length") is None:
        given = dataclasses.replace(given, max_seq_length=said.config.max_position_embeddings)
    return trained.load_encoder(prefix, given)


def refuse_unusable(texts: list[SentenceExample], where: str) -> None:
    """Raises DataError for a text without a mask; names the row, counted from 0, if there are several."""
    for number, text in enumerate(texts):
        problem = _problem(text)
        if problem:
            raise DataError(problem if len(texts) == 1 else f"row {number}: {problem}", where)


def _problem(text: SentenceExample) -> str | None:
    """Why words cannot be filled in; None if they can."""
    if text.text_b is not None:
        return "is a pair; give one text"
    return None if masked_text.places(text.text_a) else f"has no {MASK}; write {MASK} where words are wanted"


@dataclasses.dataclass(frozen=True)
class MaskedTextInputs(TextInputs):
    def _stream(self, source: text_lines.Source, report: tables.Report) -> Iterator[SentenceExample]:
        for text in super()._stream(source, report):
            problem = _problem(text)
            if problem is None:
                yield text
            else:
                report(DataError(f"row {text.guid}: {problem}", str(source)))


def _completed(files: FilePair) -> FilePair:
    source = stream.PIPE if files.input == "/dev/stdin" else files.input
    output = stream.PIPE if files.output == "/dev/stdout" else files.output
    return dataclasses.replace(files, input=source, output=output)


def _refuse_contradictions(files: FilePair) -> None:
    if files.output == stream.PIPE:
        return
    if output_form.of(files.output, None).form != tables.JSONL:
        raise FlagError(f"--output={files.output}: words are written as JSON lines; name it .jsonl or .jsonl.gz")
    if files.output.endswith(os.sep) or os.path.isdir(files.output):
        raise FlagError(f"--output={files.output}: is a folder; name a file to write")
    run_folder.refuse_own_file(files.output)
    if files.input != stream.PIPE and os.path.realpath(files.input) == os.path.realpath(files.output):
        raise FlagError(f"{files.input}: is the input and the output")


def _deciding(config: FillMaskConfig, inference: InferenceOptions, model: Trained) -> dict[str, Any]:
    return {
        **model.settings,
        "columns": dataclasses.asdict(config.columns),
        "skip_bad_rows": config.skip_bad_rows,
        "top": config.top,
        "batch_size": config.batch_size,
        "precision": inference.precision,
        "chunk": inputs.CHUNK,
    }
