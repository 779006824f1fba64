"""Predicts words for [MASK], most probable first."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf import documents
from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.output_form import OutputForm
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.estimator import preflight
from bert_tf.features.columns import Features
from bert_tf.filling import masked_text
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.modeling.heads import registry as heads
from bert_tf.tasks.sentence.example import SentenceExample

_SPEC = HeadSpec(2, PRETRAINING, (("next_sentence", False),))
_HEAD = heads.of(_SPEC)
_SLOTS = _HEAD.inputs[1:]  # after how many there are: positions, and the words that are there
_IDS, _LOG_PROBS = (field.name for field in _HEAD.outputs[1:])  # of the best words, after that of the word that is there
_CONTINUES = "##"


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


class WordFiller:
    """A loaded masked language model; must be closed."""

    def __init__(self, trained: Trained, inference: InferenceOptions, top: int) -> None:
        """`top` is the number of words per place in `lines`; FlagError if texts would be cut to a bare mask."""
        if trained.max_seq_length < masked_text.SHORTEST:
            raise FlagError(f"--max_seq_length={trained.max_seq_length}: expected at least {masked_text.SHORTEST}")
        refuse_without_head(trained)
        self.truncated = 0
        self._trained, self._top = dataclasses.replace(trained, given_head=_SPEC), top
        self._computer = inference.engine()
        self._computer.load(self._trained)

    def read(self, texts: Sequence[SentenceExample]) -> Features:
        """Makes features; can run in another thread beside `filled`."""
        trained = self._trained
        return masked_text.features([text.text_a for text in texts], trained.tokenizer, trained.max_seq_length, _SLOTS)

    def filled(self, features: Features, texts: Sequence[SentenceExample], top: int) -> list[tuple[Filled, ...]]:
        """Returns the places of each text with `top` words; BertError if memory runs out or outputs are not finite."""
        self.truncated += features.truncated
        outputs = self._computer.outputs(features)
        ids, probabilities = outputs[_IDS][:, :top], np.exp(outputs[_LOG_PROBS][:, :top].astype(np.float64))
        words = map(self._words, ids.tolist(), probabilities.tolist())
        return [tuple(Filled(*place, next(words)) for place in masked_text.places(text.text_a)) for text in texts]

    def lines(self, number: int, texts: Sequence[SentenceExample], features: Features, form: OutputForm) -> bytes:
        del number
        found = zip(texts, self.filled(features, texts, self._top))
        return form.encode("".join(f"{documents.to_json(as_json(*row), ensure_ascii=False)}\n" for row in found))

    def close(self) -> None:
        self._computer.close()

    def _words(self, ids: Sequence[int], probabilities: Sequence[float]) -> tuple[Word, ...]:
        name = self._trained.vocabulary.name
        return tuple(Word(name(number), probability) for number, probability in zip(ids, probabilities))


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
