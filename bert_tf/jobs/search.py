"""The texts that are nearest to others, from settings to what was found."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from bert_tf.batch.job import Columns, Given
from bert_tf.batch.trained import Trained
from bert_tf.errors import DataError, FlagError
from bert_tf.jobs import batch_machine
from bert_tf.jobs.encode import find_encoder
from bert_tf.jobs.search_config import SearchConfig
from bert_tf.log_form import log
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.sentence.rows import read_rows
from bert_tf.vectors import index as indexes
from bert_tf.vectors.index import VectorIndex
from bert_tf.vectors.nearest import nearest
from bert_tf.vectors.options import VectorOptions
from bert_tf.vectors.text_encoder import TextEncoder
from bert_tf.vectors.texts import TextInputs

_KEPT = ("max_seq_length", "do_lower_case", "long_text")  # of how texts were read
_SAME = ("checkpoint_sha256", "bert_config_sha256", "vocabulary_sha256")
_QUERIES = 256  # that are compared at a time


@dataclasses.dataclass(frozen=True)
class Hit:
    """A text that was found.

    Attributes:
      score: cosine of its vector and that of the query.
      row: of the text in the index, counted from 0.
      id: of the text; where it had none, the number of its line.
      text: None where the index does not hold it.
      text_b: of a pair, the second text.
    """

    score: float
    row: int
    id: str
    text: str | None = None
    text_b: str | None = None


@dataclasses.dataclass(frozen=True)
class Found:
    """What is nearest to a query, the nearest first."""

    query: SentenceExample
    hits: tuple[Hit, ...]


def search(config: SearchConfig, *, environment: Mapping[str, str]) -> Iterator[Found]:
    """Yields what is nearest to each query.

    Args:
      config: what to look for, and where.
      environment: of the process.

    Raises:
      BertError: something that the user can fix.
    """
    index = indexes.opened(config.index, config.texts)
    model, options = _encoder(config, index, environment)
    inference = batch_machine.inference(config.machine, config.batch_size, environment=environment)
    with contextlib.closing(TextEncoder(model, inference, options)) as encoder:
        for queries in _queries(config):
            yield from _found(queries, encoder, index, config)


def _encoder(config: SearchConfig, index: VectorIndex, environment: Mapping[str, str]) -> tuple[Trained, VectorOptions]:
    """Returns what made the vectors.

    Raises:
      BertError: it is not there any more, or is another one.
    """
    said = index.encoding
    if said.get("tokens"):
        raise DataError("these are vectors of tokens; encode the texts without --tokens", config.index)
    if not said:
        log.warning("%s: nothing says what made these vectors; taken for means of the last layer", config.index)
    model = find_encoder(
        config.checkpoint or said.get("checkpoint"), Given(**{name: said.get(name) for name in _KEPT}), environment=environment
    )
    other = [name for name in _SAME if said.get(name) not in (None, model.settings[name])]
    if other:
        what = other[0].removesuffix("_sha256").replace("_", " ")
        raise FlagError(f"{config.index}: was made with another {what} than that of {model.prefix}; name it with --checkpoint")
    options = VectorOptions(**{"pooling": said["pooling"], "layers": tuple(said["layers"])} if said else {})
    if options.width(model.config) != index.width:
        raise DataError(f"vectors of {index.width} numbers, {model.prefix} makes {options.width(model.config)}", config.index)
    return model, options


def _queries(config: SearchConfig) -> Iterator[list[SentenceExample]]:
    if isinstance(config.queries, str):
        for chunk in TextInputs(Columns()).chunks(config.queries):
            yield from (chunk[start : start + _QUERIES] for start in range(0, len(chunk), _QUERIES))
        return
    given = read_rows([config.query] if config.queries is None else config.queries, "queries", kind=None)
    yield from (given[start : start + _QUERIES] for start in range(0, len(given), _QUERIES))


def _found(queries: list[SentenceExample], encoder: TextEncoder, index: VectorIndex, config: SearchConfig) -> Iterator[Found]:
    vectors = encoder.vectors(encoder.read(queries)).values
    with indexes.readable_errors(config.index):
        near = nearest(vectors, index.blocks(), config.top)
        rows = index.rows(sorted({int(number) for of_query in near for number in of_query.numbers}))
    for query, of_query in zip(queries, near):
        yield Found(query, tuple(map(_hit, of_query.scores.tolist(), of_query.numbers.tolist(), itertools.repeat(rows))))


def _hit(score: float, number: int, rows: Mapping[int, Mapping[str, Any]]) -> Hit:
    return Hit(score, number, **{name: rows[number].get(name) for name in ("id", "text", "text_b")})  # type: ignore[arg-type]
