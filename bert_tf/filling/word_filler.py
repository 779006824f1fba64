"""The words that a model puts in the places of [MASK], the most probable first."""

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
    """A word piece, and how probable it is in a place."""

    piece: str
    probability: float

    @property
    def continues_word(self) -> bool:
        """Whether it goes on with the word before it; its piece then begins with ##."""
        return self.piece.startswith(_CONTINUES)


class Filled(NamedTuple):
    """A place of [MASK].

    Attributes:
      start: of its first character in the text.
      end: after its last.
      words: the most probable first.
    """

    start: int
    end: int
    words: tuple[Word, ...]


class WordFiller:
    """A model of masked words that is loaded; to be closed."""

    def __init__(self, trained: Trained, inference: InferenceOptions, top: int) -> None:
        """Loads the model.

        Args:
          trained: the model; of its head what masked words need is read.
          inference: how to compute.
          top: how many words `lines` writes of each place.

        Raises:
          CheckpointError: it has no head for masked words, or is damaged.
          FlagError: texts would be cut until no word is left beside a place.
        """
        if trained.max_seq_length < masked_text.SHORTEST:
            raise FlagError(f"--max_seq_length={trained.max_seq_length}: expected at least {masked_text.SHORTEST}")
        refuse_without_head(trained)
        self.truncated = 0
        self._trained, self._top = dataclasses.replace(trained, given_head=_SPEC), top
        self._computer = inference.engine()
        self._computer.load(self._trained)

    def read(self, texts: Sequence[SentenceExample]) -> Features:
        """Returns texts as the model reads them; may run beside `filled` in another thread."""
        trained = self._trained
        return masked_text.features([text.text_a for text in texts], trained.tokenizer, trained.max_seq_length, _SLOTS)

    def filled(self, features: Features, texts: Sequence[SentenceExample], top: int) -> list[tuple[Filled, ...]]:
        """Returns the places of each text with their words.

        Args:
          features: of the texts, from `read`.
          texts: themselves.
          top: words of a place.

        Raises:
          BertError: memory is out, or the model computes what is no number.
        """
        self.truncated += features.truncated
        outputs = self._computer.outputs(features)
        ids, probabilities = outputs[_IDS][:, :top], np.exp(outputs[_LOG_PROBS][:, :top].astype(np.float64))
        words = map(self._words, ids.tolist(), probabilities.tolist())
        return [tuple(Filled(*place, next(words)) for place in masked_text.places(text.text_a)) for text in texts]

    def lines(self, number: int, texts: Sequence[SentenceExample], features: Features, form: OutputForm) -> bytes:
        """Returns a line of JSON for each text.

        Args:
          number: of the chunk, from 0.
          texts: of the chunk.
          features: of the texts, from `read`.
          form: whether to compress them.

        Raises:
          BertError: as `filled`.
        """
        del number
        found = zip(texts, self.filled(features, texts, self._top))
        return form.encode("".join(f"{documents.to_json(as_json(*row), ensure_ascii=False)}\n" for row in found))

    def close(self) -> None:
        """Frees session and memory."""
        self._computer.close()

    def _words(self, ids: Sequence[int], probabilities: Sequence[float]) -> tuple[Word, ...]:
        name = self._trained.vocabulary.name
        return tuple(Word(name(number), probability) for number, probability in zip(ids, probabilities))


def as_json(text: SentenceExample, found: Sequence[Filled]) -> dict[str, Any]:
    """Returns a text with its words as JSON can hold it.

    Args:
      text: that was filled.
      found: its places.
    """
    masks = [{**place._asdict(), "words": [word._asdict() for word in place.words]} for place in found]
    return {"id": text.guid, "text": text.text_a, "masks": masks}


def refuse_without_head(trained: Trained) -> None:
    """Stops where a checkpoint cannot tell masked words.

    Raises:
      CheckpointError: it cannot, or its head is of another size.
    """
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
