"""Search: the texts of an index that are nearest to a query, by cosine."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.extensions.vectors.nearest import nearest
from bert_tf.io import documents, files
from bert_tf.io.log_form import log
from bert_tf.io.text_table import cell
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import MOST_EXAMPLES, Setting, group, read_settings, setting, setting_names
from bert_tf.tasks.sentence.rows import SentenceExample, read_rows
from bert_tf.training.settings import MachineSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.extensions.vectors.index import VectorIndex
    from bert_tf.extensions.vectors.text_encoder import TextEncoder

_DIGESTS = ("checkpoint_sha256", "bert_config_sha256", "vocabulary_sha256")
_QUERIES = 256  # compared at a time


@dataclasses.dataclass(frozen=True)
class SearchSettings:
    index: str = setting(
        None, "vectors written by encode: .npz, .parquet or .npy", required=True, refuse_missing=files.refuse_missing
    )
    query: str | None = setting(None, "text to find the nearest texts for (a pair: text ||| text)")
    queries: str | Sequence[Any] | None = setting(
        None, "file of texts to look up, as --input of encode; - for a pipe", in_memory=True
    )
    top: int = setting(10, "number of results per query", lowest=1)
    texts: str | None = setting(
        None, "file that an .npy was encoded from (.npy holds no texts)", refuse_missing=files.refuse_missing
    )
    checkpoint: str | None = setting(
        None, "checkpoint that encodes the query, if it has moved since encoding", refuse_missing=refuse_missing_model
    )
    batch_size: int | None = setting(None, "batch size; default: by length and GPU memory", lowest=1, highest=MOST_EXAMPLES)
    machine: MachineSettings = group(MachineSettings)

    def __post_init__(self) -> None:
        if (self.query is None) == (self.queries is None):
            raise FlagError("give exactly one of --query and --queries")


@dataclasses.dataclass(frozen=True)
class Hit:
    """A text of the index."""

    score: float  # cosine of its vector and that of the query
    row: int  # in the index, counted from 0
    id: str  # its line number if it had none
    text: str | None = None  # None if the index does not hold it
    text_b: str | None = None  # the second text of a pair


@dataclasses.dataclass(frozen=True)
class Found:
    """The texts nearest to a query, best first."""

    query: SentenceExample
    hits: tuple[Hit, ...]


@takes(SearchSettings)
def search(**settings: Any) -> list[Found]:
    """Finds the texts of an index that are nearest by cosine; as `python -m bert_tf search`.

        bert_tf.search(index="vectors.npz", query="Who won?")[0].hits[0].text

    Args:
      **settings: the command's flags, by name; `queries` may also be a list of texts.

    Returns:
      For each query its `hits`, the nearest first: `score`, `row`, `id`, `text`.

    Raises:
      BertError: invalid settings or input.
    """
    return list(find(read_settings(SearchSettings, settings), os.environ))


def find(settings: SearchSettings, environment: Mapping[str, str]) -> Iterator[Found]:
    from bert_tf.extensions.vectors import index as indexes

    index = indexes.opened(settings.index, settings.texts)
    with contextlib.closing(_encoder(settings, index, environment)) as encoder:
        for queries in _queries(settings):
            vectors = encoder.vectors(encoder.read(queries)).values
            with indexes.readable_errors(settings.index):
                near = nearest(vectors, index.blocks(), settings.top)
                rows = index.rows(sorted({int(number) for of_query in near for number in of_query.numbers}))
            for query, of_query in zip(queries, near):
                hits = zip(of_query.scores.tolist(), of_query.numbers.tolist())
                yield Found(
                    query, tuple(Hit(score, n, rows[n]["id"], rows[n].get("text"), rows[n].get("text_b")) for score, n in hits)
                )


def _encoder(settings: SearchSettings, index: VectorIndex, environment: Mapping[str, str]) -> TextEncoder:
    """Opens the model that made the vectors; raises BertError if it is missing or a different one."""
    from bert_tf.batch.job import ModelOverrides, TextOverrides
    from bert_tf.extensions.vectors.options import VectorOptions
    from bert_tf.extensions.vectors.text_encoder import TextEncoder
    from bert_tf.training import batch_machine, sources

    record = index.encoding
    if record.get("tokens"):
        raise DataError("these are vectors of tokens; encode the texts without --tokens", settings.index)
    if not record:
        log.warning("%s: origin of the vectors unknown; assuming the last layer and the default pooling", settings.index)
    overrides = ModelOverrides(**{name: record.get(name) for name in setting_names(TextOverrides)})
    recorded = None if settings.checkpoint else record.get("checkpoint")
    try:
        model = sources.find(settings.checkpoint or recorded, overrides, environment=environment, needs_head=False)
    except CheckpointError as error:
        if recorded is None:
            raise
        raise CheckpointError(f"{settings.index}: the model that made it: {error}; name it with --checkpoint") from error
    for name in _DIGESTS:
        if record.get(name) not in (None, model.settings[name]):
            kind = name.removesuffix("_sha256").replace("_", " ")
            raise FlagError(
                f"{settings.index}: was made with a different {kind} than {model.prefix}; name it with --checkpoint"
            )
    options = VectorOptions(**{"pooling": record["pooling"], "layers": tuple(record["layers"])} if record else {})
    if options.width(model.config) != index.width:
        raise DataError(f"vectors of {index.width} numbers, {model.prefix} makes {options.width(model.config)}", settings.index)
    inference = batch_machine.inference(settings.machine, settings.batch_size, [model.prefix], environment=environment)
    return TextEncoder(model, inference, options)


def _queries(settings: SearchSettings) -> Iterator[list[SentenceExample]]:
    from bert_tf.batch.job import Columns
    from bert_tf.batch.texts import TextInputs, texts_of

    if isinstance(settings.queries, str):
        chunks: Any = TextInputs(Columns()).chunks(settings.queries)
    else:
        rows = [texts_of(str(settings.query))] if settings.queries is None else settings.queries
        chunks = [read_rows(rows, "queries", kind=None)]
    for chunk in chunks:
        yield from (chunk[start : start + _QUERIES] for start in range(0, len(chunk), _QUERIES))


def _print(call: Call) -> None:
    several = call.settings.query is None
    for result in find(call.settings, os.environ):
        sys.stdout.write(_as_json(result) if call.own["json"] else _as_lines(result, several=several))


def _as_json(result: Found) -> str:
    hits = [{name: value for name, value in dataclasses.asdict(hit).items() if value is not None} for hit in result.hits]
    return documents.to_json({"id": result.query.guid, "query": " ||| ".join(result.query.texts), "hits": hits}) + "\n"


def _as_lines(result: Found, *, several: bool) -> str:
    """Returns a tab-separated line per text: the query's id if there are several, then cosine, id and text."""
    lines = []
    for hit in result.hits:
        text = " ||| ".join(part for part in (hit.text, hit.text_b) if part is not None)
        cells = [*([result.query.guid] if several else []), f"{hit.score:.4f}", hit.id, text]
        lines.append("\t".join(map(cell, cells)))
    return "".join(f"{line}\n" for line in lines)


COMMAND = Command(
    "Finds the nearest texts by cosine, in vectors written by encode (docs/vectors.md).",
    SearchSettings,
    _print,
    example="python -m bert_tf search --index=vectors.npz --query='Who won?'",
    first=("index", "query", "queries", "top", "texts"),
    own=(Setting("json", bool, False, "print one JSON object per query, with all details of each text"),),
)
