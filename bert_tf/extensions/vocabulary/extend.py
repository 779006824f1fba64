"""Extends a model's vocabulary; each new word starts as the mean of the pieces that it was split into."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import extension, run_layout
from bert_tf.checkpoints.prefixes import refuse_missing_model
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.extensions.vocabulary import additions, show
from bert_tf.extensions.vocabulary.additions import WORD_TABLE, NewWord, Pieces, with_new_rows
from bert_tf.extensions.vocabulary.counting import Counts, Fertility, cut_otherwise, fertility_of
from bert_tf.extensions.vocabulary.texts import CorpusSettings
from bert_tf.io import documents, files
from bert_tf.io.log_form import log
from bert_tf.io.text_table import Printed, counted
from bert_tf.library.keywords import takes
from bert_tf.operations.command import Call, Command
from bert_tf.settings import group, read_settings, setting
from bert_tf.tokenization import casing, text_rules
from bert_tf.tokenization.vocabulary import PUBLISHED, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from bert_tf.training import sources
from bert_tf.training.settings import ModelSettings

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.extensions.checkpoint.models import PublishedModel

ADDED = "added_words.tsv"

_TOP, _MIN_FREQUENCY = 1000, 5


@dataclasses.dataclass(frozen=True)
class ExtendSettings:
    checkpoint: str | None = setting(
        None, "model; default: $BERT_BASE_DIR or the default checkpoint", positional=True, refuse_missing=refuse_missing_model
    )
    output: str = setting(
        None, "folder to write; an existing one is kept unless --overwrite is given", required=True, written=True
    )
    add: str | None = setting(None, "file of words to add, one per line", refuse_missing=files.refuse_missing)
    from_: str | None = setting(
        None, "text from which to add the words that save most pieces; a file, a pattern, or - for a pipe"
    )
    top: int | None = setting(None, f"maximum number of words to add from --from (default {_TOP})", lowest=1)
    min_frequency: int | None = setting(None, f"minimum occurrences of a word in --from (default {_MIN_FREQUENCY})", lowest=1)
    text: str | None = setting(None, "text to measure before and after, if not that of --from")
    do_lower_case: bool | None = setting(None, "lower-case the text; default: as the model's folder says")
    bert_config_file: str | None = setting(None, "model configuration; default: beside the weights")
    vocab_file: str | None = setting(None, "vocabulary of the model; default: beside the weights")
    form: CorpusSettings = group(CorpusSettings, without=("input_file",))
    overwrite: bool = setting(False, "replace earlier output of this command")

    def __post_init__(self) -> None:
        if self.add is None and self.from_ is None:
            raise FlagError("give --add=FILE, a list of words, --from=TEXT, whose words save most pieces, or both")
        idle = [name for name in ("top", "min_frequency") if getattr(self, name) is not None and self.from_ is None]
        if idle:
            raise FlagError(f"--{idle[0]} belongs to --from: --add takes all words")
        if self.from_ is None and self.text is None:
            show.refuse_idle(self.form, "--from and --text")


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
    return extend(read_settings(ExtendSettings, values), environment=os.environ)


def extend(settings: ExtendSettings, *, environment: Mapping[str, str]) -> Extended:
    """Writes a model with more words to train further; the default model is that of $BERT_BASE_DIR."""
    extension.needed("checkpoint", "vocabulary extend")
    from bert_tf.extensions.checkpoint import models

    output, text, form = Path(settings.output), settings.text or settings.from_, settings.form
    models.refuse_taken(output, overwrite=settings.overwrite)
    model = _model(settings, environment)
    before = _tokenizer(model, settings.do_lower_case)
    counts = show.count_words([text], form, rules=before.rules) if text else None
    chosen = _words(before, counts, settings)
    done = additions.extended(before.vocabulary, (new.word for new in chosen))
    after = WordPieceTokenizer(done.vocabulary, lower_case=before.lower_case)
    with models.folder(settings.output, overwrite=settings.overwrite) as folder:
        _write(folder, model, after, dict(zip(done.rows, (before.vocabulary.ids(new.pieces) for new in chosen))))
        table = [("row", "word", "pieces", "times", "saved")]
        table += [
            (str(row), new.word, " ".join(new.pieces), str(new.times), str(new.saved)) for row, new in zip(done.rows, chosen)
        ]
        (folder / ADDED).write_text("".join("\t".join(line) + "\n" for line in table), encoding="utf-8")
        models.note(folder, "extend", [model.checkpoint], words=len(chosen))
    sizes = len(before.vocabulary), len(after.vocabulary)
    fertilities = {} if counts is None else {"before": fertility_of(counts, before), "after": fertility_of(counts, after)}
    others = Counter() if counts is None else cut_otherwise(counts, before, after)
    return Extended(output, chosen, done.rows, sizes, fertilities, others)


def _model(settings: ExtendSettings, environment: Mapping[str, str]) -> PublishedModel:
    from bert_tf.extensions.checkpoint import models

    config, vocabulary = settings.bert_config_file, settings.vocab_file
    if settings.checkpoint is not None:
        return models.PublishedModel(models.opened(settings.checkpoint), config, vocabulary)
    source = sources.find_model(ModelSettings(), environment=environment)
    log.info("the model is %s (%s)", source.checkpoint, source.origin)
    files = config or os.fspath(source.config), vocabulary or os.fspath(source.vocabulary)
    return models.PublishedModel(models.opened(source.checkpoint), *files)


def _tokenizer(model: PublishedModel, chosen: bool | None) -> WordPieceTokenizer:
    """Makes the model's tokenizer; checks that its parts fit each other."""
    from bert_tf.estimator import preflight, run_folder

    folder, path = model.checkpoint.folder, model.vocabulary_file
    if path is None:
        raise CheckpointError(f"{folder}: no vocabulary beside the weights; name it with --vocab_file")
    if WORD_TABLE not in model.entries:
        raise CheckpointError(f"{model.checkpoint.name}: no {WORD_TABLE}; see checkpoint inspect")
    vocabulary, config = Vocabulary.from_file(path), model.config
    lower_case: bool = model.record.get("do_lower_case", casing.find(vocabulary).lower_case) if chosen is None else chosen
    problems = preflight.check_model(config, vocabulary, max_seq_length=config.max_position_embeddings)
    problems += preflight.check_casing(vocabulary, lower_case=lower_case)
    preflight.refuse(problems + run_folder.misfits_of_parts(folder, config, vocabulary))
    return WordPieceTokenizer(vocabulary, lower_case=lower_case)


def _words(tokenizer: WordPieceTokenizer, counts: Counts | None, settings: ExtendSettings) -> tuple[NewWord, ...]:
    """Words to add, those of --add first; at least one."""
    listed: tuple[NewWord, ...] = ()
    if settings.add is not None:
        listed, notes = additions.listed(settings.add, tokenizer)
        show.warn(notes)
    if settings.from_ is None:
        if not listed:
            raise DataError("none of the words can be added; nothing was written", settings.add)
        return listed
    if counts is None or settings.text is not None:
        counts = show.count_words([settings.from_], settings.form, rules=tokenizer.rules)
    taken, top = {new.word for new in listed}, settings.top
    least = settings.min_frequency or _MIN_FREQUENCY  # drops rare ones, such as a number that occurs once
    frequent = Counter({word: times for word, times in counts.words.items() if times >= least and word not in taken})
    chosen = additions.most_saving(dataclasses.replace(counts, words=frequent), tokenizer, top or _TOP)
    if not (listed or chosen):
        why = f"no word of several pieces occurs {least} times or more (--min_frequency)"
        raise DataError(f"{why}; nothing was written", settings.from_)
    if len(chosen) < (top or 0):
        log.warning("--top=%d: only %s to add occur %d times or more", top, counted(len(chosen), "word"), least)
    return (*listed, *chosen)


def _write(folder: Path, model: PublishedModel, after: WordPieceTokenizer, pieces: Pieces) -> None:
    """Writes checkpoint, configuration and vocabulary; without a step because no training is continued."""
    from bert_tf.batch import model_copy
    from bert_tf.estimator import run_folder
    from bert_tf.extensions.checkpoint import models
    from bert_tf.extensions.checkpoint.tensors import STEP

    entries = with_new_rows({name: value for name, value in model.entries.items() if name != STEP}, pieces)
    config = dataclasses.replace(model.config, vocab_size=len(entries[WORD_TABLE]))
    copied = models.write_model(folder, entries, beside=None)
    if model_copy.copy_decision(model.checkpoint.name, copied):
        log.warning("%s: its rule was fitted with the earlier vocabulary; calibrate it again", folder)
    (folder / run_layout.CONFIG).write_text(config.to_json(), encoding="utf-8")
    (folder / run_layout.VOCABULARY).write_text(after.vocabulary.to_text(), encoding="utf-8")
    models.copy(folder, model.checkpoint.folder, [text_rules.CONFIG])  # tokenizer.json embeds the old vocabulary
    others = any((model.checkpoint.folder / name).is_file() for name in (text_rules.PIPELINE, text_rules.ADDED))
    if others and (after.vocabulary.text_rules != PUBLISHED or not (folder / text_rules.CONFIG).is_file()):
        rules = after.vocabulary.text_rules
        values = {"do_lower_case": after.lower_case, **(rules.values() if rules != PUBLISHED else {})}
        (folder / text_rules.CONFIG).write_text(documents.to_json(values) + "\n", encoding="utf-8")
    record = run_folder.load_record(model.checkpoint.folder)
    if record is not None:  # a trained model: its head is still usable
        parts = {"vocabulary_sha256": after.vocabulary.fingerprint, "bert_config": config.as_dict()}
        known = {name: value for name, value in parts.items() if name in record[run_folder.DETERMINING]}
        record[run_folder.DETERMINING].update(known)
        text = documents.to_json(record, indent=2, sort_keys=True) + "\n"
        (folder / run_layout.RECORD).write_text(text, encoding="utf-8")
    models.write_record(folder, model)


def _lines(done: Extended) -> Iterator[str]:
    before, after = done.size
    in_unused = len(done.words) - (after - before)
    yield f"{done.output}: {counted(len(done.words), 'word')} added, {in_unused:,} in unused rows"
    yield f"pieces: {before:,} before, {after:,} after"
    times = (f"{new.word} {new.times}" if new.times else new.word for new in done.words)
    yield f"words, and how often each occurs in --from ({ADDED} has all): {show.shortened(times)}"
    if done.fertility:
        yield ""
        yield from show.fertility_lines(done.fertility)
    if done.cut_otherwise:
        others = [word for word, _ in done.cut_otherwise.most_common()]
        more = show.shortened(others, 5)
        yield ""
        yield f"other words that are split differently, since they begin with a new one: {len(others):,} ({more})"


def _print(call: Call) -> None:
    print(extend(call.settings, environment=os.environ), end="")


COMMAND = Command(
    "adds words to a model; each starts as the mean of its pieces",
    ExtendSettings,
    _print,
    example="python -m bert_tf vocabulary extend --add=words.txt --output=out/extended",
    first=("output", "add", "from", "top", "text"),
)
