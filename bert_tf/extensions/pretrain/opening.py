"""From files to the rows of a split: tokens are stored on disk, held-out documents apart from the others."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from bert_tf import run_layout
from bert_tf.errors import DataError, FlagError
from bert_tf.extensions.pretrain.corpus import records, rows, store
from bert_tf.extensions.pretrain.corpus.documents import Corpus, find, warn_of_lines
from bert_tf.extensions.pretrain.corpus.masking import Masking, warn_of_few
from bert_tf.extensions.pretrain.corpus.records import Records
from bert_tf.extensions.pretrain.corpus.rows import RowSettings
from bert_tf.extensions.pretrain.corpus.store import TokenStore
from bert_tf.extensions.pretrain.rows import ShardRows, Source, StoredRows, TextRows
from bert_tf.extensions.pretrain.settings import PretrainingSettings
from bert_tf.features.columns import Numbers
from bert_tf.io import atomic, files, lock
from bert_tf.io.log_form import log
from bert_tf.tasks.base import DEV, Opening, Unopened

_SHARE, _MOST = 20, 200  # one in 20 documents is held out, at most 200
_EVAL_BATCH = 8  # rows of a batch of evaluation, as published
_SMALL = 4 << 20  # bytes
_PIECE = 1 << 22  # numbers that a digest reads at a time


@dataclasses.dataclass(frozen=True)
class SplitFiles(Unopened):
    """A split as described by its settings."""

    name: str
    purpose: str  # train or dev
    settings: PretrainingSettings
    second: bool = False  # belongs to the second phase

    def opened(self, opening: Opening) -> TextRows:
        most = None
        if self.purpose == DEV:
            most = self.settings.max_eval_steps * (opening.eval_batch_size or _EVAL_BATCH)
        length = min(self.settings.phase2_max_seq_length, opening.positions) if self.second else opening.max_seq_length
        make = functools.partial(self._source, opening, length)
        return TextRows(make, opening.tokenizer.vocabulary, self.name, length, most)

    def _source(self, opening: Opening, length: int) -> Source:
        settings = self.settings
        trained_on = (settings.phase2_input_file if self.second else None) or settings.input_file or ""
        of_file = self.purpose == DEV and settings.held_out_file is not None
        named = (settings.held_out_file if of_file else trained_on) or ""
        _refuse_both(trained_on, settings.held_out_file)
        paths = find(named)
        most = settings.max_predictions_per_seq
        if self.second:
            most = settings.phase2_max_predictions_per_seq or -(-most * length // opening.max_seq_length)
        limit = _Limit(length, most, "phase2_" * self.second)
        if shards := records.shards_of(paths):
            return self._of_shards(shards, opening, limit, apart=of_file or self.purpose != DEV)
        _refuse_other_documents(settings)
        whole = of_file or (self.purpose != DEV and settings.held_out_file is not None)
        return self._of_text(paths, opening, limit, whole=whole)

    def _of_text(self, paths: tuple[str, ...], opening: Opening, limit: _Limit, *, whole: bool) -> Source:
        """Returns rows of all documents (`whole`), of the training documents, or of the held-out ones."""
        settings = self.settings
        folder = Path(settings.corpus_dir or opening.output_dir / run_layout.CORPUS)
        corpus = settings.corpus(paths)
        size = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
        workers = 1 if size < _SMALL else None  # all cores
        _refuse_pipes(paths)
        atomic.make_folder(folder)
        with lock.taking_turns(folder):
            if self.purpose != DEV:
                warn_of_lines(corpus)
            name = f"tokens-{store.key_of(corpus, opening.tokenizer)[:16]}"
            tokens = store.build(folder / name, corpus, opening.tokenizer, workers=workers)
            if self.purpose != DEV:
                store.warn_of_unknown(tokens, opening.tokenizer.vocabulary)
            used = None if whole else self._documents(tokens.documents, paths)
            of_rows = RowSettings(limit.length, settings.short_seq_prob, settings.nsp, settings.random_seed)
            key = hashlib.sha256(repr(of_rows).encode() + (b"" if used is None else used.tobytes())).hexdigest()
            made = rows.build(folder / f"rows-{key[:16]}-{name}", tokens, of_rows, documents=used, workers=workers)
            if self.purpose != DEV:
                rows.warn_of_random(made)
        masking = Masking(
            opening.tokenizer.vocabulary,
            settings.masked_lm_prob,
            limit.max_predictions,
            settings.do_whole_word_mask,
            settings.random_seed + self.second,
        )
        if self.purpose != DEV:
            warn_of_few(masking, limit.length, limit.prefix)
        return StoredRows(made, masking, longest=limit.length, digest=_digest(tokens, used))

    def _documents(self, count: int, paths: tuple[str, ...]) -> Numbers | None:
        """Returns the document numbers of this split, None for all; raises `DataError` if there are too few."""
        asked, shown_paths = self.settings.held_out_documents, ", ".join(paths[:3])
        wanted = min(_MOST, max(count // _SHARE, min(count - 1, 1))) if asked is None else asked
        if wanted >= count:
            raise DataError(f"--held_out_documents={wanted}: the text has {count}; some must be left to train on", shown_paths)
        if self.purpose == DEV and not wanted:
            why = "--held_out_documents=0" if asked == 0 else "the text is one document"
            raise DataError(
                f"nothing is held out to evaluate on ({why}); name --held_out_file, or only --do_train", shown_paths
            )
        held_out = np.sort(np.random.default_rng(0).choice(count, wanted, replace=False))  # the same for all seeds
        if self.purpose == DEV:
            return held_out.astype(np.int64)
        return np.delete(np.arange(count), held_out) if wanted else None

    def _of_shards(self, paths: tuple[str, ...], opening: Opening, limit: _Limit, *, apart: bool) -> Source:
        """Raises `DataError` if rows are too long, have too many masks, are not pairs, or cannot be held out."""
        if not apart:
            raise DataError("shards do not say where documents begin: name --held_out_file to evaluate on", paths[0])
        missing = records.missing(paths)
        if missing:
            log.warning("%s: is not there, but other shards of its set are; are all of them made, and copied?", missing)
        folder = Path(self.settings.corpus_dir or opening.output_dir / run_layout.CORPUS)
        name = hashlib.sha256("\n".join(map(os.path.abspath, paths)).encode()).hexdigest()[:16]
        atomic.make_folder(folder)
        with lock.taking_turns(folder):
            shards = Records.open(paths, opening.tokenizer.vocabulary, folder=folder / f"index-{name}")
            for flag, wanted, limited in (
                ("max_seq_length", shards.seq_length, limit.length),
                ("max_predictions_per_seq", shards.max_predictions, limit.max_predictions),
            ):
                if wanted > limited:
                    what = "tokens" if flag == "max_seq_length" else "masked words"
                    raise DataError(f"its rows have {wanted} {what}; --{limit.prefix}{flag}={wanted} reads them", paths[0])
            states = [(os.path.abspath(path), os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in paths]
            key = hashlib.sha256(repr(states).encode()).hexdigest()
            digest = _noted(folder / f"index-{name}.sha256", key, lambda: " ".join(map(files.digest, paths)))
        made = ShardRows(shards, opening.tokenizer.vocabulary, digest=hashlib.sha256(digest.encode()).hexdigest())
        if self.settings.nsp and not made.pairs:
            raise DataError("its rows are single texts, from which next sentences cannot be learned; add --nsp=false", paths[0])
        return made


@dataclasses.dataclass(frozen=True)
class _Limit:
    """Limits on tokens and masked words per row."""

    length: int
    max_predictions: int
    prefix: str  # of the names of their flags


def _refuse_pipes(paths: tuple[str, ...]) -> None:
    """Rejects folders, and pipes: a resumed run cannot read them again."""
    for path in paths:
        if os.path.isdir(path):
            raise DataError("is a folder; name files, as with a pattern", path)
        if not Corpus((path,)).can_be_read_again:
            raise FlagError(f"{path}: a pipe can be read only once, and a resumed run reads its text again; write it to a file")


def _refuse_both(trained_on: str, held_out: str | None) -> None:
    if held_out is None or not trained_on:
        return
    trained = set(_identities(find(trained_on)))
    path = next((path for identity, path in _identities(find(held_out)).items() if identity in trained), None)
    if path is not None:
        raise FlagError(f"--held_out_file: {path} is trained on too (--input_file)")


def _refuse_other_documents(settings: PretrainingSettings) -> None:
    """Held-out documents are numbers in all files: of a file in other ones, each phase would train on those of the other."""
    if settings.phase2_input_file is None or settings.held_out_file is not None or settings.held_out_documents == 0:
        return
    first, second = (_identities(find(named) if named else ()) for named in (settings.input_file, settings.phase2_input_file))
    both = [path for identity, path in second.items() if identity in first]
    if both and list(first) != list(second):
        raise FlagError(
            f"--phase2_input_file: {both[0]} is in --input_file too; name --held_out_file, or the same files for both"
        )


def _identities(paths: Iterable[str]) -> dict[tuple[int, int], str]:
    """Existing files in their order, by what a link leads to; hard links too."""
    states = ((path, os.stat(path)) for path in paths if os.path.exists(path))
    return {(state.st_dev, state.st_ino): path for path, state in states}


def _digest(tokens: TokenStore, used: Numbers | None) -> str:
    """Returns a sha256 of the documents used; that of the whole store, which may be large, is cached beside it."""

    def of_all() -> str:
        sha256 = hashlib.sha256()
        for column in (tokens.ids, tokens.sentence_starts, tokens.document_starts):
            for start in range(0, len(column), _PIECE):
                sha256.update(np.ascontiguousarray(column[start : start + _PIECE]).tobytes())
        return sha256.hexdigest()

    whole = _noted(tokens.folder.with_name(f"{tokens.folder.name}.sha256"), tokens.key, of_all)
    return whole if used is None else hashlib.sha256(whole.encode() + used.tobytes()).hexdigest()


def _noted(path: Path, key: str, compute: Callable[[], str]) -> str:
    """Returns the value cached in a file under a key; computes and stores it first if missing."""
    try:
        noted = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # none, or damaged
        noted = ""
    if noted.partition(" ")[0] == key:
        return noted.partition(" ")[2]
    computed = compute()
    atomic.write_text(path, f"{key} {computed}")
    return computed
