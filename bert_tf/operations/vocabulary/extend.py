"""Extends a model's vocabulary; each new word starts as the mean of the pieces that it was split into."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import documents, run_layout
from bert_tf.checkpoints import word_rows
from bert_tf.corpus.settings import CorpusSettings
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.jobs import sources
from bert_tf.jobs.settings import ModelSettings
from bert_tf.library.keywords import takes
from bert_tf.log_form import log
from bert_tf.operations.command import Call, Command
from bert_tf.operations.vocabulary import words
from bert_tf.settings import group, read, setting
from bert_tf.text_table import Printed, counted
from bert_tf.tokenization import additions, casing, fertility
from bert_tf.tokenization.additions import NewWord
from bert_tf.tokenization.counting import Counts
from bert_tf.tokenization.fertility import Fertility
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

if TYPE_CHECKING:  # what imports TensorFlow waits until it is needed: --help is quick
    from bert_tf.operations.checkpoint.reading import PublishedModel

ADDED = "added_words.tsv"

_TOP, _MIN_FREQUENCY = 1000, 5
_TOKENIZER_CONFIG, _TOKENIZER = casing.TOKENIZER_FILES


@dataclasses.dataclass(frozen=True)
class ExtendSettings:
    checkpoint: str | None = setting(None, "a model, else the default one", positional=True)
    output: str = setting(None, "folder to write; one that exists is kept unless --overwrite is given", required=True)
    add: str | None = setting(None, "file of words to add, one a line")
    from_: str | None = setting(
        None, "text whose words save most pieces, instead or besides; a file, a pattern, or - for a pipe"
    )
    top: int | None = setting(None, f"how many words of --from to add at most (default {_TOP})", lowest=1)
    min_frequency: int | None = setting(None, f"how often a word of --from must occur (default {_MIN_FREQUENCY})", lowest=1)
    text: str | None = setting(None, "text to measure before and after, where it is not that of --from")
    do_lower_case: bool | None = setting(None, "whether the model lowers letters; else as its folder says")
    bert_config_file: str | None = setting(None, "sizes of the model; else beside the weights")
    vocab_file: str | None = setting(None, "word pieces of the model; else beside the weights")
    form: CorpusSettings = group(CorpusSettings, without=("input_file",))
    overwrite: bool = setting(False, "replace what this command has written")

    def __post_init__(self) -> None:
        if self.add is None and self.from_ is None:
            raise FlagError("give --add=FILE, a list of words, --from=TEXT, whose words save most pieces, or both")
        idle = [name for name in ("top", "min_frequency") if getattr(self, name) is not None and self.from_ is None]
        if idle:
            raise FlagError(f"--{idle[0]} belongs to --from: --add takes all words")

    @property
    def least(self) -> int:
        """Minimum count of a word of --from; the default drops rare ones, such as a number that occurs once."""
        return self.min_frequency or _MIN_FREQUENCY


@dataclasses.dataclass(frozen=True)
class Extended(Printed):
    output: Path  # folder
    words: tuple[NewWord, ...]  # in the order of choice
    rows: tuple[int, ...]  # row of each word in the vocabulary
    size: tuple[int, int]  # pieces before and after
    fertility: Mapping[str, Fertility]  # of the text before and after; empty without a text
    cut_otherwise: Counter[str]  # other words now split differently, by count

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"


@takes(ExtendSettings)
def extend_vocabulary(
    checkpoint: str | os.PathLike[str] | None = None, *, corpus: str | os.PathLike[str] | None = None, **settings: Any
) -> Extended:
    """Writes a model with additional words; as `python -m bert_tf vocabulary extend`.

    Args:
      checkpoint: a model in any layout; None for that of $BERT_BASE_DIR, else the default one.
      corpus: source of the words, chosen by the pieces they save; the flag is --from.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
    """
    values = {"checkpoint": checkpoint, "from": corpus, **settings}
    return extend(read(ExtendSettings, values), environment=os.environ)


def extend(settings: ExtendSettings, *, environment: Mapping[str, str]) -> Extended:
    """Writes a model with more words to train further; the default model is that of $BERT_BASE_DIR."""
    from bert_tf.operations.checkpoint import writing

    output, text, form = Path(settings.output), settings.text or settings.from_, settings.form
    writing.refuse_taken(output, overwrite=settings.overwrite)
    model = _model(settings, environment)
    before = _tokenizer(model, settings.do_lower_case)
    counts = words.count([text], form, lower_case=before.lower_case) if text else None
    chosen = _words(before, counts, settings)
    done = additions.extended(before.vocabulary, (new.word for new in chosen))
    after = WordPieceTokenizer(done.vocabulary, lower_case=before.lower_case)
    with writing.folder(settings.output, overwrite=settings.overwrite) as folder:
        _write(folder, model, after, dict(zip(done.rows, (before.vocabulary.ids(new.pieces) for new in chosen))))
        (folder / ADDED).write_text(_table(chosen, done.rows), encoding="utf-8")
        writing.note(folder, "extend", [model.found], words=len(chosen))
    sizes = len(before.vocabulary), len(after.vocabulary)
    found = {} if counts is None else {"before": fertility.of(counts, before), "after": fertility.of(counts, after)}
    others = Counter() if counts is None else fertility.cut_otherwise(counts, before, after)
    return Extended(output, chosen, done.rows, sizes, found, others)


def _model(settings: ExtendSettings, environment: Mapping[str, str]) -> PublishedModel:
    from bert_tf.operations.checkpoint import reading

    config, vocabulary = settings.bert_config_file, settings.vocab_file
    if settings.checkpoint is not None:
        return reading.PublishedModel(reading.opened(settings.checkpoint), config, vocabulary)
    source = sources.find_model(ModelSettings(), environment=environment)
    log.info("the model is %s (%s)", source.checkpoint, source.origin)
    files = config or os.fspath(source.config), vocabulary or os.fspath(source.vocabulary)
    return reading.PublishedModel(reading.opened(source.checkpoint), *files)


def _tokenizer(model: PublishedModel, given: bool | None) -> WordPieceTokenizer:
    """Makes the model's tokenizer; checks that its parts fit each other."""
    from bert_tf.estimator import preflight, run_folder

    place, path = model.found.folder, model.vocabulary_file
    if path is None:
        raise CheckpointError(f"{place}: no vocabulary beside the weights; name it with --vocab_file")
    if word_rows.TABLE not in model.entries:
        raise CheckpointError(f"{model.found.place}: no {word_rows.TABLE}; see checkpoint inspect")
    vocabulary, config = Vocabulary.from_file(path), model.config
    lower_case: bool = model.record.get("do_lower_case", casing.find(vocabulary).lower_case) if given is None else given
    problems = preflight.check_model(config, vocabulary, max_seq_length=config.max_position_embeddings)
    problems += preflight.check_casing(vocabulary, lower_case=lower_case)
    preflight.refuse(problems + run_folder.misfits_of_parts(place, config, vocabulary))
    return WordPieceTokenizer(vocabulary, lower_case=lower_case)


def _words(tokenizer: WordPieceTokenizer, counts: Counts | None, settings: ExtendSettings) -> tuple[NewWord, ...]:
    """Words to add, those of --add first; at least one."""
    listed: tuple[NewWord, ...] = ()
    if settings.add is not None:
        listed, notes = additions.listed(settings.add, tokenizer)
        words.warn(notes)
    if settings.from_ is None:
        if not listed:
            raise DataError("none of the words can be added; nothing was written", settings.add)
        return listed
    if counts is None or settings.text is not None:
        counts = words.count([settings.from_], settings.form, lower_case=tokenizer.lower_case)
    taken, least, top = {new.word for new in listed}, settings.least, settings.top
    frequent = Counter({word: times for word, times in counts.words.items() if times >= least and word not in taken})
    chosen = additions.most_saving(dataclasses.replace(counts, words=frequent), tokenizer, top or _TOP)
    if not (listed or chosen):
        why = f"no word of several pieces occurs {least} times or more (--min_frequency)"
        raise DataError(f"{why}; nothing was written", settings.from_)
    if len(chosen) < (top or 0):
        log.warning("--top=%d: only %s to add occur %d times or more", top, counted(len(chosen), "word"), least)
    return (*listed, *chosen)


def _write(folder: Path, model: PublishedModel, after: WordPieceTokenizer, pieces: word_rows.Pieces) -> None:
    """Writes checkpoint, configuration and vocabulary; without a step because no training is continued."""
    from bert_tf.checkpoints.tensors import STEP
    from bert_tf.estimator import run_folder
    from bert_tf.operations.checkpoint import writing

    entries = word_rows.with_new_rows({name: value for name, value in model.entries.items() if name != STEP}, pieces)
    config = dataclasses.replace(model.config, vocab_size=len(entries[word_rows.TABLE]))
    writing.write_model(folder, entries, beside=None)
    (folder / run_layout.CONFIG).write_text(config.to_json(), encoding="utf-8")
    (folder / run_layout.VOCABULARY).write_text(after.vocabulary.to_text(), encoding="utf-8")
    _write_casing(folder, model.found.folder, after.lower_case)
    record = run_folder.load_record(model.found.folder)
    if record is not None:  # of a trained model: its head is still of use
        parts = {"vocabulary_sha256": after.vocabulary.fingerprint, "bert_config": dataclasses.asdict(config)}
        known = {name: value for name, value in parts.items() if name in record[run_folder.DETERMINING]}
        record[run_folder.DETERMINING].update(known)
        text = documents.to_json(record, indent=2, sort_keys=True) + "\n"
        (folder / run_layout.RECORD).write_text(text, encoding="utf-8")


def _write_casing(folder: Path, source: Path, lower_case: bool) -> None:
    """Writes tokenizer settings without tokenizer.json, which embeds the old vocabulary."""
    from bert_tf.operations.checkpoint import writing

    writing.copy(folder, source, [_TOKENIZER_CONFIG])
    if (source / _TOKENIZER).is_file() and not (folder / _TOKENIZER_CONFIG).is_file():
        (folder / _TOKENIZER_CONFIG).write_text(documents.to_json({"do_lower_case": lower_case}) + "\n", encoding="utf-8")


def _table(chosen: tuple[NewWord, ...], rows: tuple[int, ...]) -> str:
    lines = [("row", "word", "pieces", "times", "saved")]
    lines += [(str(row), new.word, " ".join(new.pieces), str(new.times), str(new.saved)) for row, new in zip(rows, chosen)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _lines(done: Extended) -> Iterator[str]:
    before, after = done.size
    in_unused = len(done.words) - (after - before)
    yield f"{done.output}: {counted(len(done.words), 'word')} added, {in_unused:,} in unused rows"
    yield f"pieces: {before:,} before, {after:,} after"
    times = (f"{new.word} {new.times}" if new.times else new.word for new in done.words)
    yield f"words, and how often each occurs in --from ({ADDED} has all): {words.shown(times)}"
    if done.fertility:
        yield ""
        yield from words.fertility_lines(done.fertility)
    if done.cut_otherwise:
        others = [word for word, _ in done.cut_otherwise.most_common()]
        more = words.shown(others, 5)
        yield ""
        yield f"other words that are split differently, since they begin with a new one: {len(others):,} ({more})"


def _print(call: Call) -> None:
    print(extend(call.settings, environment=os.environ), end="")


COMMAND = Command(
    "a model with more words, else the default one; each begins as the mean of its pieces", ExtendSettings, _print
)
