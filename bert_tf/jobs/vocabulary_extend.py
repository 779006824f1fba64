"""Extends a model's vocabulary; each new word starts as the mean of the pieces that it was split into."""

from __future__ import annotations

import dataclasses
import html
import os
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from bert_tf import documents, run_layout
from bert_tf.checkpoints import word_rows
from bert_tf.checkpoints.tensors import STEP
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.estimator import preflight, run_folder
from bert_tf.jobs import checkpoint_output, checkpoint_sources, corpus_words, sources
from bert_tf.jobs.checkpoint_model import PublishedModel
from bert_tf.jobs.settings import ModelSettings
from bert_tf.jobs.vocabulary_form import fertility_lines, shown, warn
from bert_tf.jobs.vocabulary_settings import FROM, MIN_FREQUENCY, TEXT, TOP
from bert_tf.log_form import log
from bert_tf.text_table import counted
from bert_tf.tokenization import additions, casing, fertility
from bert_tf.tokenization.additions import NewWord
from bert_tf.tokenization.counting import Counts
from bert_tf.tokenization.fertility import Fertility
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

ADDED = "added_words.tsv"

_TOKENIZER_CONFIG, _TOKENIZER = casing.TOKENIZER_FILES


@dataclasses.dataclass(frozen=True)
class Extended:
    output: Path  # folder
    words: tuple[NewWord, ...]  # in the order of choice
    rows: tuple[int, ...]  # row of each word in the vocabulary
    size: tuple[int, int]  # pieces before and after
    fertility: Mapping[str, Fertility]  # of the text before and after; empty without a text
    cut_otherwise: Counter[str]  # other words now split differently, by count

    def __str__(self) -> str:
        return "\n".join(_lines(self)) + "\n"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def extend(
    checkpoint: str | os.PathLike[str] | None, settings: Mapping[str, Any], *, environment: Mapping[str, str]
) -> Extended:
    """Writes a model with more words to train further; the default model is that of $BERT_BASE_DIR."""
    _refuse_contradictions(settings)
    checkpoint_output.refuse_taken(Path(settings["output"]), overwrite=settings["overwrite"])
    model = _opened(checkpoint, settings, environment)
    before = _tokenizer(model, settings["do_lower_case"])
    text = settings[TEXT] or settings[FROM]
    counts = corpus_words.count([text], settings, lower_case=before.lower_case) if text else None
    words = _words(before, counts, settings)
    done = additions.extended(before.vocabulary, (new.word for new in words))
    after = WordPieceTokenizer(done.vocabulary, lower_case=before.lower_case)
    with checkpoint_output.writing(settings["output"], overwrite=settings["overwrite"]) as folder:
        _write(folder, model, after, dict(zip(done.rows, (before.vocabulary.ids(new.pieces) for new in words))))
        (folder / ADDED).write_text(_table(words, done.rows), encoding="utf-8")
        checkpoint_output.note(folder, "extend", [model.found], words=len(words))
    sizes = len(before.vocabulary), len(after.vocabulary)
    found = {} if counts is None else {"before": fertility.of(counts, before), "after": fertility.of(counts, after)}
    others = Counter() if counts is None else fertility.cut_otherwise(counts, before, after)
    return Extended(Path(settings["output"]), words, done.rows, sizes, found, others)


def _refuse_contradictions(settings: Mapping[str, Any]) -> None:
    if settings["output"] is None:
        raise FlagError("--output is required: a folder to write")
    if settings["add"] is None and settings[FROM] is None:
        raise FlagError("give --add=FILE, a list of words, --from=TEXT, whose words save most pieces, or both")
    idle = [name for name in ("top", "min_frequency") if settings[name] is not None and settings[FROM] is None]
    if idle:
        raise FlagError(f"--{idle[0]} belongs to --from: --add takes all words")


def _opened(
    checkpoint: str | os.PathLike[str] | None, settings: Mapping[str, Any], environment: Mapping[str, str]
) -> PublishedModel:
    if checkpoint is not None:
        return PublishedModel(checkpoint_sources.opened(checkpoint), settings)
    source = sources.find_model(ModelSettings(), environment=environment)
    log.info("the model is %s (%s)", source.checkpoint, source.origin)
    beside = {"bert_config_file": str(source.config), "vocab_file": str(source.vocabulary)}
    said = {name: value for name, value in settings.items() if value is not None}
    return PublishedModel(checkpoint_sources.opened(source.checkpoint), {**beside, **said})


def _tokenizer(model: PublishedModel, given: bool | None) -> WordPieceTokenizer:
    """Makes the model's tokenizer; checks that its parts fit each other."""
    place, path = model.found.folder, model.vocabulary_file
    if path is None:
        raise CheckpointError(f"{place}: no vocabulary beside the weights; name it with --vocab_file")
    if word_rows.TABLE not in model.entries:
        raise CheckpointError(f"{model.found.place}: no {word_rows.TABLE}; see checkpoint inspect")
    vocabulary, config = Vocabulary.from_file(path), model.config
    lower_case = model.record.get("do_lower_case", casing.find(vocabulary).lower_case) if given is None else given
    problems = preflight.check_model(config, vocabulary, max_seq_length=config.max_position_embeddings)
    problems += preflight.check_casing(vocabulary, lower_case=lower_case)
    preflight.refuse(problems + run_folder.misfits_of_parts(place, config, vocabulary))
    return WordPieceTokenizer(vocabulary, lower_case=lower_case)


def _words(tokenizer: WordPieceTokenizer, counts: Counts | None, settings: Mapping[str, Any]) -> tuple[NewWord, ...]:
    """Words to add, those of --add first; at least one."""
    listed: tuple[NewWord, ...] = ()
    if settings["add"] is not None:
        listed, notes = additions.listed(settings["add"], tokenizer)
        warn(notes)
    if settings[FROM] is None:
        if not listed:
            raise DataError("none of the words can be added; nothing was written", settings["add"])
        return listed
    frequent = _frequent(_of_corpus(counts, tokenizer, settings), {new.word for new in listed}, settings)
    chosen = additions.most_saving(frequent, tokenizer, settings["top"] or TOP)
    if not (listed or chosen):
        why = f"no word of several pieces occurs {_least(settings)} times or more (--min_frequency)"
        raise DataError(f"{why}; nothing was written", settings[FROM])
    if len(chosen) < (settings["top"] or 0):
        counted_words = counted(len(chosen), "word")
        log.warning("--top=%d: only %s to add occur %d times or more", settings["top"], counted_words, _least(settings))
    return (*listed, *chosen)


def _frequent(counts: Counts, listed: Container[str], settings: Mapping[str, Any]) -> Counts:
    words = {word: times for word, times in counts.words.items() if times >= _least(settings) and word not in listed}
    return dataclasses.replace(counts, words=Counter(words))


def _least(settings: Mapping[str, Any]) -> int:
    """Minimum count of a word of --from; the default drops rare ones, such as a number that occurs once."""
    return int(settings["min_frequency"] or MIN_FREQUENCY)


def _of_corpus(counts: Counts | None, tokenizer: WordPieceTokenizer, settings: Mapping[str, Any]) -> Counts:
    if counts is None or settings[TEXT] is not None:
        return corpus_words.count([settings[FROM]], settings, lower_case=tokenizer.lower_case)
    return counts


def _write(folder: Path, model: PublishedModel, after: WordPieceTokenizer, pieces: word_rows.Pieces) -> None:
    """Writes checkpoint, configuration and vocabulary; without a step because no training is continued."""
    entries = word_rows.with_new_rows({name: value for name, value in model.entries.items() if name != STEP}, pieces)
    config = dataclasses.replace(model.config, vocab_size=len(entries[word_rows.TABLE]))
    checkpoint_output.write_model(folder, entries, beside=None)
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
    checkpoint_output.copy(folder, source, [_TOKENIZER_CONFIG])
    if (source / _TOKENIZER).is_file() and not (folder / _TOKENIZER_CONFIG).is_file():
        (folder / _TOKENIZER_CONFIG).write_text(documents.to_json({"do_lower_case": lower_case}) + "\n", encoding="utf-8")


def _table(words: tuple[NewWord, ...], rows: tuple[int, ...]) -> str:
    lines = [("row", "word", "pieces", "times", "saved")]
    lines += [(str(row), new.word, " ".join(new.pieces), str(new.times), str(new.saved)) for row, new in zip(rows, words)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _lines(done: Extended) -> Iterator[str]:
    before, after = done.size
    in_unused = len(done.words) - (after - before)
    yield f"{done.output}: {counted(len(done.words), 'word')} added, {in_unused:,} in unused rows"
    yield f"pieces: {before:,} before, {after:,} after"
    words = (f"{new.word} {new.times}" if new.times else new.word for new in done.words)
    yield f"words, and how often each occurs in --from ({ADDED} has all): {shown(words)}"
    if done.fertility:
        yield ""
        yield from fertility_lines(done.fertility)
    if done.cut_otherwise:
        others = [word for word, _ in done.cut_otherwise.most_common()]
        yield ""
        yield f"other words that are split differently, since they begin with a new one: {len(others):,} ({shown(others, 5)})"
