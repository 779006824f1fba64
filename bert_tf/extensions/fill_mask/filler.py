"""Fills in [MASK]: masked texts and the words that a model predicts.

A text that fits is one row with all of its places. In a longer one each place has a row of its own: as many word
pieces as fit, with the place in the middle, or nearer to an end of the text if there is no more. Other places in
such a row stay [MASK].

Shapes: E texts, n word pieces of a text.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf import extension
from bert_tf.batch.engine import InferenceOptions
from bert_tf.batch.file_pairs import OutputForm
from bert_tf.batch.session import Predictor, Session
from bert_tf.batch.texts import TextInputs
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.reader import model_reader
from bert_tf.errors import CheckpointError, DataError, FlagError
from bert_tf.estimator import preflight
from bert_tf.features.columns import Features, IntArray
from bert_tf.fields import Field
from bert_tf.head_spec import BEST_WORDS, PRETRAINING, HeadSpec
from bert_tf.io import documents
from bert_tf.modeling.heads import registry as heads
from bert_tf.runtime import forks
from bert_tf.settings import Setting, checked
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.sentence.rows import SentenceExample, read_rows
from bert_tf.tokenization.tokenizer import Tokenizer
from bert_tf.tokenization.vocabulary import MASK

extension.needed("pretrain", "fill-mask")  # whose head it is
TOP = 5  # words of each place

_SHORTEST = 3  # [CLS], a place, [SEP]
_MASK = re.compile(re.escape(MASK))
_SPEC = HeadSpec(2, PRETRAINING, (("next_sentence", False),))
_HEAD = heads.make_head(_SPEC)
_SLOTS = _HEAD.inputs[1:]  # after their number: positions, and the original words
_IDS, _LOG_PROBS = (field.name for field in _HEAD.outputs[1:])  # of the best words, after the original word's


class Word(NamedTuple):
    piece: str
    probability: float

    @property
    def continues_word(self) -> bool:
        """Whether the piece starts with ##."""
        return self.piece.startswith("##")


class Filled(NamedTuple):
    start: int  # first character in the text
    end: int  # exclusive
    words: tuple[Word, ...]  # most probable first


class WordFiller(Session):
    """A model that fills in masked words. Weights are loaded lazily; `close` frees them.

    Threads may share one filler; they take turns.

        with bert_tf.word_filler("uncased_L-12_H-768_A-12") as filler:
            filler.fill_mask(["Paris is the [MASK] of France."])[0][0].words[0].piece
    """

    truncated = 0  # texts so far

    def fill_mask(self, texts: Iterable[Any], top: int = TOP) -> list[tuple[Filled, ...]]:
        """Returns the most probable words for each [MASK].

        Args:
          texts: N texts, each with at least one [MASK].
          top: words for each [MASK], up to 10.

        Returns:
          For each text its masks in order: `start` and `end` in the text, and `words`, the most probable first, each with
          its `piece` and `probability`.

        Raises:
          CheckpointError: the model has no masked-LM head.
          DataError: a text has the wrong type or no [MASK].
          FlagError: `top` is out of bounds.
          ClosedError: the filler was closed.
        """
        top = checked(Setting("top", int, TOP, "", 1, highest=BEST_WORDS), top)
        examples = read_rows(texts, "texts", kind=None)
        refuse_unusable(examples, "texts", self._masked.tokenizer)
        return self._filled(self.read(examples), examples, top) if examples else []

    def load_weights(self) -> None:
        with self._turn():
            self._loaded(self._masked)

    def read(self, texts: Sequence[SentenceExample]) -> Features:
        """Makes features; can run in another thread beside `fill_mask`."""
        model = self._masked
        return features_of([text.text_a for text in texts], model.tokenizer, model.max_seq_length, _SLOTS)

    def _filled(self, features: Features, texts: Sequence[SentenceExample], top: int) -> list[tuple[Filled, ...]]:
        """Returns the places of each text with `top` words."""
        self.truncated += features.truncated
        outputs, name = self.outputs(features, self._masked), self.trained.vocabulary.word_piece
        ids, probabilities = outputs[_IDS][:, :top], np.exp(outputs[_LOG_PROBS][:, :top].astype(np.float64))
        words = (tuple(Word(name(n), p) for n, p in zip(*of_place)) for of_place in zip(ids.tolist(), probabilities.tolist()))
        return [tuple(Filled(*span, next(words)) for span in places(text.text_a)) for text in texts]

    def __repr__(self) -> str:
        return f"<bert_tf.WordFiller {self.checkpoint}>"

    @functools.cached_property
    def _masked(self) -> Trained:
        """The model with the head for masked words; FlagError if texts would be cut to a bare mask."""
        forks.begin()
        if self.trained.max_seq_length < _SHORTEST:
            raise FlagError(f"--max_seq_length={self.trained.max_seq_length}: expected at least {_SHORTEST}")
        _refuse_without_head(self.trained)
        return self.trained.with_head(_SPEC)


def of_model(model: Predictor) -> WordFiller:
    return WordFiller(model.trained, model.inference, weights_of=model)


class FileFiller(WordFiller):
    """Fills in texts of files."""

    def __init__(self, trained: Trained, inference: InferenceOptions, top: int) -> None:
        super().__init__(trained, inference)
        self._top = top

    def lines(self, number: int, texts: Sequence[SentenceExample], features: Features, form: OutputForm) -> bytes:
        del number
        lines = []
        for text, filled in zip(texts, self._filled(features, texts, self._top)):
            masks = [{**mask._asdict(), "words": [word._asdict() for word in mask.words]} for mask in filled]
            lines.append(documents.to_json({"id": text.guid, "text": text.text_a, "masks": masks}, ensure_ascii=False) + "\n")
        return form.encode("".join(lines))


def _refuse_without_head(trained: Trained) -> None:
    """Raises CheckpointError if a checkpoint has no head for masked words, or one of another size."""
    reader = model_reader(trained.prefix)
    shapes = _HEAD.variables(trained.config)
    missing = [name for name in shapes if name not in reader.shapes]
    if missing:
        raise CheckpointError(
            f"{trained.prefix}: no {missing[0]}: it has no head for masked words; name a checkpoint of pre-training that kept"
            " it, or make one (python -m bert_tf pretrain)"
        )
    wrong = preflight.wrong_shapes(reader, shapes)
    if wrong:
        raise CheckpointError(f"{trained.prefix}: {'; '.join(wrong)}; do configuration and checkpoint belong together?")


@dataclasses.dataclass(frozen=True)
class MaskedTextInputs(TextInputs):
    """Texts with [MASK] in files; `tokenizer` is that of the model."""

    tokenizer: Tokenizer | None = None

    def _stream(self, source: text_lines.Source, report: tables.Report) -> Iterator[SentenceExample]:
        for text in super()._stream(source, report):
            problem = _problem(text, self.tokenizer)
            if problem is None:
                yield text
            else:
                report(DataError(f"row {text.guid}: {problem}", str(source)))


def refuse_unusable(texts: Sequence[SentenceExample], where: str, tokenizer: Tokenizer | None = None) -> None:
    """Raises DataError for a text without a mask; names the row, counted from 0, if there are several."""
    for number, text in enumerate(texts):
        problem = _problem(text, tokenizer)
        if problem:
            raise DataError(problem if len(texts) == 1 else f"row {number}: {problem}", where)


def _problem(text: SentenceExample, tokenizer: Tokenizer | None) -> str | None:
    """Why words cannot be filled in; None if they can, as far as is known without the tokenizer."""
    if text.text_b is not None:
        return "is a pair; give one text"
    asked = len(places(text.text_a))
    if not asked:
        return f"has no {MASK}; write {MASK} where a word is to be filled in"
    if tokenizer is None or not tokenizer.vocabulary.own_rules or len(_with_masks(text.text_a, tokenizer)[1]) == asked:
        return None
    vocabulary = tokenizer.vocabulary
    return f"the tokenizer does not see its mask token {vocabulary.tokens[vocabulary.mask_id]!r}; put blanks around {MASK}"


def places(text: str) -> list[tuple[int, int]]:
    """Start and end of each [MASK], in characters."""
    return [match.span() for match in _MASK.finditer(text)]


def features_of(texts: Sequence[str], tokenizer: Tokenizer, longest: int, slots: Sequence[Field]) -> Features:
    """Converts texts with at least one place each; `slots` are fields of the positions and of the unknown words."""
    rows_by_text = [rows(text, tokenizer, longest) for text in texts]
    each = [row for of_text, _ in rows_by_text for row in of_text]
    positions = _column(position for _, of_row in each for position in of_row)
    lengths = _column(len(ids) for ids, _ in each)
    of_positions, of_words = slots
    return Features(
        token_ids=_column(number for ids, _ in each for number in ids),
        lengths=lengths,
        first_lengths=lengths,
        targets={of_positions.name: positions, of_words.name: np.zeros_like(positions)},
        fields=(of_positions, of_words),
        example_ids=np.repeat(np.arange(len(rows_by_text), dtype=np.int32), [len(of_text) for of_text, _ in rows_by_text]),
        slots=_column(len(of_row) for _, of_row in each),
        truncated=sum(is_cut for _, is_cut in rows_by_text),
    )


def _column(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, np.int32)


def rows(text: str, tokenizer: Tokenizer, longest: int) -> tuple[list[tuple[list[int], list[int]]], bool]:
    """Ids with [CLS] and [SEP], and positions of masks, of one row or one for each place; and whether the text was cut.

    A row has at most `longest` pieces, which are at least 3.
    """
    vocabulary, inside = tokenizer.vocabulary, longest - 2
    pieces, masked = (_with_masks if vocabulary.own_rules else _between_masks)(text, tokenizer)
    is_cut, last = len(pieces) > inside, len(pieces) - inside
    windows = [(min(max(at - inside // 2, 0), last), [at]) for at in masked] if is_cut else [(0, masked)]
    return [
        ([vocabulary.cls_id, *pieces[start : start + inside], vocabulary.sep_id], [at - start + 1 for at in asked])
        for start, asked in windows
    ], is_cut


def _between_masks(text: str, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Ids, and positions of masks, which BERT's tokenizer would split into punctuation and a word."""
    pieces: list[int] = []
    masked: list[int] = []
    for number, part in enumerate(text.split(MASK)):
        if number:
            masked.append(len(pieces))
            pieces.append(tokenizer.vocabulary.mask_id)
        pieces += tokenizer.ids(part)
    return pieces, masked


def _with_masks(text: str, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """The same of a tokenizer that knows its own mask token and the blanks around it; it may not see one within a word."""
    vocabulary = tokenizer.vocabulary
    token = vocabulary.tokens[vocabulary.mask_id]
    starts = {start + number * (len(token) - len(MASK)) for number, (start, _) in enumerate(places(text))}
    ids, begins, _ = (column.tolist() for column in tokenizer.pieces(text.replace(MASK, token)))
    return ids, [n for n, (piece, start) in enumerate(zip(ids, begins)) if piece == vocabulary.mask_id and start in starts]
