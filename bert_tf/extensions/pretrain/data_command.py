"""Pretraining-data: text becomes shards of masked rows, as by the published create_pretraining_data.py.

Text becomes a store of tokens, then a table of rows, then shards. Each survives if the command is killed, and the
same command resumes from it; at the end only the shards and their manifest remain.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bert_tf import run_layout
from bert_tf.errors import BertError, FlagError, LostPeerError, UnreadTextError
from bert_tf.extensions.pretrain.corpus import processes, rows, shards, store
from bert_tf.extensions.pretrain.corpus.documents import Corpus, find, warn_of_lines
from bert_tf.extensions.pretrain.corpus.masking import Masking, warn_of_few
from bert_tf.extensions.pretrain.corpus.records import is_shard, manifest_of
from bert_tf.extensions.pretrain.corpus.rows import RowSettings
from bert_tf.extensions.pretrain.corpus.shards import ShardPlan, Tally
from bert_tf.extensions.pretrain.corpus.store import TokenStore
from bert_tf.extensions.pretrain.settings import LONGEST_ROW, CorpusSettings, MaskedRowSettings
from bert_tf.io import atomic, documents, files, lock
from bert_tf.io.log_form import log
from bert_tf.io.text_table import counted
from bert_tf.library.keywords import Arguments, Beam, run_pipeline, runner, takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import group, read_settings, refuse_remote, setting
from bert_tf.tokenization import casing
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

FORMAT = 1  # version of the shard contents
_COUNTS = "documents", "sentences", "pieces"
_MOST_DUPLICATES = 1000
_MOST_SHARDS = 99_999  # names have five digits
_MOST_WORKERS = 1024
SHORTEST = 5  # [CLS], [SEP], [SEP] and a piece of either sentence


@dataclasses.dataclass(frozen=True)
class TextSettings(CorpusSettings):
    vocab_file: str | None = setting(None, "vocabulary of the model", required=True)
    do_lower_case: bool = setting(True, "lower-case the text; false for cased models")


@dataclasses.dataclass(frozen=True)
class MaskSettings(MaskedRowSettings):
    """Rows and masks: all flags of the published script, with its defaults."""

    max_seq_length: int = setting(128, "maximum tokens per row", lowest=SHORTEST, highest=LONGEST_ROW)
    dupe_factor: int = setting(
        10, "passes over the text, each with different rows and masks", lowest=1, highest=_MOST_DUPLICATES
    )

    def rows(self) -> RowSettings:
        return RowSettings(self.max_seq_length, self.short_seq_prob, self.nsp, self.random_seed, self.dupe_factor)

    def masking(self, vocabulary: Vocabulary) -> Masking:
        return Masking(vocabulary, self.masked_lm_prob, self.max_predictions_per_seq, self.do_whole_word_mask, self.random_seed)


@dataclasses.dataclass(frozen=True)
class ShardSettings:
    output_file: str | None = setting(None, "TFRecord file, or several, comma-separated", required=True)
    num_shards: int = setting(1, "number of files, NAME-00000-of-00004.SUFFIX", lowest=1, highest=_MOST_SHARDS)
    workers: int | None = setting(
        None, "maximum number of processes; default: one per core; does not change the shards", lowest=1, highest=_MOST_WORKERS
    )


@dataclasses.dataclass(frozen=True)
class PretrainingDataSettings:
    text: TextSettings = group(TextSettings, "Text", input_file={"required": True})
    shards: ShardSettings = group(ShardSettings, "Files to write")
    masks: MaskSettings = group(MaskSettings, "Rows and masks")


@dataclasses.dataclass(frozen=True)
class Written:
    """Complete shards."""

    paths: tuple[str, ...]
    documents: int
    sentences: int
    pieces: int  # word pieces
    tally: Tally  # of the rows
    next_sentence: bool  # whether rows are sentence pairs

    def lines(self) -> list[str]:
        size = sum(map(os.path.getsize, self.paths))
        sentences, pieces = counted(self.sentences, "sentence"), counted(self.pieces, "piece")
        files = self.paths[0] + (f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else "")
        return [
            f"documents      {self.documents:,}, with {sentences} and {pieces}",
            f"rows           {self.tally.rows:,}, with {counted(self.tally.tokens, 'token')}",
            *self.tally.lines(next_sentence=self.next_sentence),
            f"files          {files}: {size / 1e6:,.1f} MB",
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines()) + "\n"


@takes(PretrainingDataSettings)
def make_pretraining_data(*, beam: Arguments = False, **settings: Any) -> Written:
    """Writes text as shards of masked rows; as `python -m bert_tf pretraining-data`.

        bert_tf.make_pretraining_data(input_file="texts/*.txt", output_file="rows.tfrecord", vocab_file="vocab.txt")

    Args:
      beam: arguments of Apache Beam, to run as a pipeline; True for none.
      **settings: the command's flags, by name.

    Returns:
      The `paths` of the shards, the counts of `documents`, `sentences` and `pieces`, and a `tally` of the rows.

    Raises:
      BertError: invalid settings or input.
    """
    return make(read_settings(PretrainingDataSettings, settings), beam=runner(beam))


def make(config: PretrainingDataSettings, *, beam: Beam | None = None) -> Written:
    """Writes the shards, except those already written by the same command; Beam workers replace local processes."""
    corpus, tokenizer = config.text.corpus(find(str(config.text.input_file))), _tokenizer(config)
    names = shards.names(str(config.shards.output_file), config.shards.num_shards)
    for name in names:
        refuse_remote("--output_file: ", name)
    if beam is not None:
        corpus, names = _shared(corpus, names)
    makers = _Makers(config.shards.workers or processes.cores(), beam)
    warn_of_few(config.masks.masking(tokenizer.vocabulary), config.masks.max_seq_length)
    _refuse_same((*corpus.files, str(config.text.vocab_file)), names)
    atomic.make_folder(Path(names[0]).parent)
    warn_of_lines(corpus)
    with lock.writing_file(names[0]):
        identity = [FORMAT, store.key_of(corpus, tokenizer), rows.FORMAT, dataclasses.asdict(config.masks), len(names)]
        key = hashlib.sha256(documents.to_json(identity).encode()).hexdigest()
        written = _finished_shards(names, key) if corpus.can_be_read_again else None
        if written is not None:
            log.info("%s: already made from the same text and settings", names[0])
            return written
        return _make(config, corpus, tokenizer, _Output(names, key), makers)


class _Output(NamedTuple):
    """Shards to write."""

    paths: tuple[str, ...]
    key: str  # digest of everything that affects them


class _Makers(NamedTuple):
    """Who does the work."""

    workers: int  # processes on this machine
    beam: Beam | None  # used instead, if set

    def tokens(self, folder: Path, corpus: Corpus, tokenizer: WordPieceTokenizer) -> TokenStore:
        if self.beam is None:
            return store.build(folder, corpus, tokenizer, workers=self.workers)
        work = functools.partial(store.build_of_file, folder=folder, corpus=corpus, tokenizer=tokenizer)
        run_pipeline("pretraining-data", (work, range(len(corpus.files))), self.beam)
        return store.join(folder, corpus, tokenizer)

    def shards(self, plan: ShardPlan) -> list[Tally]:
        numbers = range(len(plan.paths))
        try:
            if self.beam is not None:
                run_pipeline("pretraining-data", (plan.write, numbers), self.beam)
            return list(processes.mapped(plan.write, numbers, workers=min(self.workers, len(numbers)), unit="shard"))
        except BaseException:  # Ctrl-C too: workers were ended in the middle of a shard
            for path in plan.paths:
                atomic.delete_unfinished(path)
            raise


def _shared(corpus: Corpus, names: Sequence[str]) -> tuple[Corpus, tuple[str, ...]]:
    """Makes paths absolute for workers, which share the folders; FlagError for pipes and unmappable paths."""
    for name in corpus.files:
        if files.has_scheme(name):
            raise FlagError(f"--beam: {name}: tokens are mapped into memory; name a folder that all workers mount")
    if not corpus.can_be_read_again:
        raise FlagError("--beam: workers cannot read the pipes of this process; name files")
    absolute = tuple(map(os.path.abspath, corpus.files))
    return dataclasses.replace(corpus, files=absolute), tuple(map(os.path.abspath, names))


def _make(
    config: PretrainingDataSettings, corpus: Corpus, tokenizer: WordPieceTokenizer, output: _Output, makers: _Makers
) -> Written:
    unfinished = Path(f"{output.paths[0]}.unfinished")
    if not corpus.can_be_read_again:
        shutil.rmtree(unfinished, ignore_errors=True)
    try:
        tokens = makers.tokens(unfinished / "tokens", corpus, tokenizer)
        written = _made(config.masks, tokens, tokenizer.vocabulary, output, makers)
    except processes.LostWorkerError as error:
        raise BertError(f"{error} with fewer --workers; it continues, except from pipes") from error
    except UnreadTextError as error:
        raise BertError(f"{error}; the same command continues, except from pipes") from error
    except LostPeerError:  # the server of a pipeline: the same command continues
        raise
    except BertError:  # its message promises that nothing was changed, and a full disk needs the room
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    _write_manifest(written, output.key, config, tokenizer)
    shutil.rmtree(unfinished, ignore_errors=True)
    return written


def _made(masks: MaskSettings, tokens: TokenStore, vocabulary: Vocabulary, output: _Output, makers: _Makers) -> Written:
    folder = tokens.folder.parent
    table = rows.build(folder / "rows", tokens, masks.rows(), workers=makers.workers)
    store.warn_of_unknown(tokens, vocabulary)
    rows.warn_of_random(table)
    made_of = counted(tokens.documents, "document"), counted(tokens.tokens, "piece")
    log.info("%s with %s became %s", *made_of, counted(len(table), "row"))
    if tokens.documents == 1 and masks.nsp:
        log.warning(
            "all text is one document, so the random text of a pair comes from it too; separate documents with blank lines"
        )
    if len(table) < len(output.paths):
        raise FlagError(
            f"{counted(len(output.paths), 'shard')} for {counted(len(table), 'row')}: lower --num_shards, or name fewer files"
        )
    done = atomic.make_folder(folder / f"shards-{output.key[:16]}")
    tallies = makers.shards(ShardPlan(table, masks.masking(vocabulary), masks.max_seq_length, output.paths, done))
    counts = tokens.documents, len(tokens.sentence_starts) - 1, tokens.tokens
    return Written(output.paths, *counts, Tally.sum(tallies), masks.nsp)


def _tokenizer(config: PretrainingDataSettings) -> WordPieceTokenizer:
    """Raises BertError if the vocabulary is unusable or clearly of the other case."""
    vocabulary, lower_case = Vocabulary.from_file(str(config.text.vocab_file)), config.text.do_lower_case
    case = casing.find(vocabulary)
    if case.against(lower_case=lower_case):
        kind = "uncased" if case.lower_case else "cased"
        raise FlagError(f"--do_lower_case={str(lower_case).lower()}: {config.text.vocab_file} is {kind} ({case})")
    if case.doubtful(lower_case=lower_case):
        log.warning("--do_lower_case is %s, which may not suit the model: %s", lower_case, case)
    return WordPieceTokenizer(vocabulary, lower_case=lower_case)


def _refuse_same(inputs: Iterable[str], names: Sequence[str]) -> None:
    """Rejects outputs that would overwrite an input, each other, the manifest, or a file that is no shard or a run's."""
    manifests = {str(manifest_of(name)) for name in names}
    written = Counter(os.path.realpath(name) for name in (*names, *manifests))
    same = sorted(set(map(os.path.realpath, inputs)) & written.keys())
    if same:
        raise FlagError(f"{same[0]}: is both input and output")
    for name in names:
        run_layout.refuse_own_file(name)
        if os.path.exists(name) and os.path.getsize(name) and not is_shard(name):
            raise FlagError(f"{name}: exists, and is no shard, which would replace it; name another --output_file")
    for manifest in sorted(manifests):
        if os.path.exists(manifest):
            _refuse_other_list(Path(manifest), names)
    (path, times), *_ = written.most_common(1)
    if times > 1:
        raise FlagError(f"--output_file={','.join(names)}: {path} would be written twice; name other files")


def _refuse_other_list(path: Path, names: Sequence[str]) -> None:
    """Rejects a list that the command would replace if it is another program's, or that of another set of shards."""
    try:
        content = documents.read_json(path)
    except (OSError, documents.DocumentError):
        content = None
    if not isinstance(content, dict) or not content.keys() >= {"key", "tally"}:
        raise FlagError(f"{path}: exists, and is no list of shards, which would replace it; name another --output_file")
    listed = content.get("bytes")
    for name in sorted({*(listed if isinstance(listed, dict) else ())} - {*map(os.path.basename, names)}):
        shard = path.with_name(name)
        if manifest_of(str(shard)) == path and shard.exists():
            raise FlagError(f"{shard}: is of another set, which {path.name} lists; delete it, or name another --output_file")


def _write_manifest(written: Written, key: str, config: PretrainingDataSettings, tokenizer: WordPieceTokenizer) -> None:
    """Writes the contents and vocabulary of the shards beside them; `records` checks it."""
    content = {
        "key": key,
        "vocabulary": tokenizer.vocabulary.fingerprint,
        "settings": {**dataclasses.asdict(config.text), **dataclasses.asdict(config.masks)},
        **{name: getattr(written, name) for name in _COUNTS},
        "tally": dataclasses.asdict(written.tally),
        "bytes": {os.path.basename(path): os.path.getsize(path) for path in written.paths},
    }
    for manifest in dict.fromkeys(map(manifest_of, written.paths)):
        atomic.write_text(manifest, documents.to_json(content, indent=1) + "\n")


def _finished_shards(paths: tuple[str, ...], key: str) -> Written | None:
    """Returns complete shards with the same key; None if there are none."""
    try:
        manifest = documents.read_json(manifest_of(paths[0]))
        sizes = {os.path.basename(path): os.path.getsize(path) for path in paths}
        if manifest["key"] == key and manifest["bytes"] == sizes:
            documents_, sentences, pieces = (manifest[name] for name in _COUNTS)
            return Written(
                paths, documents_, sentences, pieces, Tally.from_values(manifest["tally"]), manifest["settings"]["nsp"]
            )
    except (OSError, documents.DocumentError, LookupError, TypeError):  # missing, or of another kind
        return None
    return None


def _print(call: Call) -> None:
    print(make(call.settings, beam=call.beam), end="")


COMMAND = Command(
    "Makes masked pre-training rows, with the flags of create_pretraining_data.py (docs/pretraining.md).",
    PretrainingDataSettings,
    _print,
    example="python -m bert_tf pretraining-data --input_file=text.txt --output_file=rows.tfrecord --vocab_file=vocab.txt",
    first=("input_file", "output_file", "vocab_file", "max_seq_length", "num_shards"),
    pipeline="pretraining-data",
    stopped="stopped; the same command continues; pipes start over",
)
