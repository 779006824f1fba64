"""Predicts words for [MASK], most probable first."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf import documents
from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.output_form import OutputForm
from bert_tf.batch.session import Session
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.estimator import preflight
from bert_tf.features.columns import Features
from bert_tf.filling import masked_text
from bert_tf.filling.texts import refuse_unusable
from bert_tf.head_spec import BEST_WORDS, PRETRAINING, HeadSpec
from bert_tf.modeling.heads import registry as heads
from bert_tf.runtime import forks
from bert_tf.settings import Setting, checked
from bert_tf.tasks.sentence.example import SentenceExample
from bert_tf.tasks.sentence.rows import read_rows

_SPEC = HeadSpec(2, PRETRAINING, (("next_sentence", False),))
_HEAD = heads.of(_SPEC)
_SLOTS = _HEAD.inputs[1:]  # after how many there are: positions, and the words that are there
_IDS, _LOG_PROBS = (field.name for field in _HEAD.outputs[1:])  # of the best words, after that of the word that is there
_CONTINUES = "##"
TOP = 5  # words of each place


class Word(NamedTuple):
    piece: str
    probability: float

    @property
    def continues_word(self) -> bool:
        """Whether the piece starts with ##."""
        return self.piece.startswith(_CONTINUES)


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
        refuse_unusable(examples, "texts")
        return self._filled(self.read(examples), examples, top) if examples else []

    def load_weights(self) -> None:
        with self._turn():
            self._loaded(self._masked)

    def read(self, texts: Sequence[SentenceExample]) -> Features:
        """Makes features; can run in another thread beside `fill_mask`."""
        model = self._masked
        return masked_text.features([text.text_a for text in texts], model.tokenizer, model.max_seq_length, _SLOTS)

    def _filled(self, features: Features, texts: Sequence[SentenceExample], top: int) -> list[tuple[Filled, ...]]:
        """Returns the places of each text with `top` words."""
        self.truncated += features.truncated
        outputs = self.outputs(features, self._masked)
        ids, probabilities = outputs[_IDS][:, :top], np.exp(outputs[_LOG_PROBS][:, :top].astype(np.float64))
        words = map(self._words, ids.tolist(), probabilities.tolist())
        return [tuple(Filled(*place, next(words)) for place in masked_text.places(text.text_a)) for text in texts]

    def __repr__(self) -> str:
        return f"<bert_tf.WordFiller {self.checkpoint}>"

    @functools.cached_property
    def _masked(self) -> Trained:
        """The model with the head for masked words; FlagError if texts would be cut to a bare mask."""
        forks.begin()
        if self.trained.max_seq_length < masked_text.SHORTEST:
            raise FlagError(f"--max_seq_length={self.trained.max_seq_length}: expected at least {masked_text.SHORTEST}")
        refuse_without_head(self.trained)
        return dataclasses.replace(self.trained, given_head=_SPEC)

    def _words(self, ids: Sequence[int], probabilities: Sequence[float]) -> tuple[Word, ...]:
        name = self.trained.vocabulary.name
        return tuple(Word(name(number), probability) for number, probability in zip(ids, probabilities))


class FileFiller(WordFiller):
    """Fills in texts of files."""

    def __init__(self, trained: Trained, inference: InferenceOptions, top: int) -> None:
        super().__init__(trained, inference)
        self._top = top

    def lines(self, number: int, texts: Sequence[SentenceExample], features: Features, form: OutputForm) -> bytes:
        del number
        rows = zip(texts, self._filled(features, texts, self._top))
        return form.encode("".join(f"{documents.to_json(as_json(*row), ensure_ascii=False)}\n" for row in rows))


def as_json(text: SentenceExample, found: Sequence[Filled]) -> dict[str, Any]:
    masks = [{**place._asdict(), "words": [word._asdict() for word in place.words]} for place in found]
    return {"id": text.guid, "text": text.text_a, "masks": masks}


def refuse_without_head(trained: Trained) -> None:
    """Raises CheckpointError if a checkpoint has no head for masked words, or one of another size."""
    reader = CheckpointReader(trained.prefix)
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
