"""Words for [MASK], as a program asks for them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.job import Given
from bert_tf.batch.trained import Trained
from bert_tf.filling.word_filler import Filled
from bert_tf.filling.word_filler import WordFiller as LoadedFiller
from bert_tf.jobs import batch_machine, machine_settings
from bert_tf.jobs import fill_mask as job
from bert_tf.jobs.encode_config import BATCH_SIZE
from bert_tf.jobs.fill_mask_config import OF_MACHINE, OF_MODEL, SETTINGS, TOP, configured
from bert_tf.library.closed import Closable, ClosedError
from bert_tf.library.keywords import takes
from bert_tf.settings import checked, named
from bert_tf.tasks.sentence.rows import read_rows

_TEXTS = "texts"
_OF_MODEL = frozenset(row.name for row in OF_MODEL)
_KEYWORDS = (BATCH_SIZE, *OF_MODEL, *OF_MACHINE)


class WordFiller(Closable):
    """A model that fills in masked words. Weights are loaded lazily; `close` frees them.

    Threads may call `fill_mask` of one filler; they take turns.

        with bert_tf.word_filler("uncased_L-12_H-768_A-12") as filler:
            filler.fill_mask(["Paris is the [MASK] of France."])[0][0].words[0].piece
    """

    def __init__(self, trained: Trained, inference: InferenceOptions) -> None:
        """Reads nothing yet; `word_filler` makes fillers.

        Args:
          trained: weights, and what belongs to them.
          inference: where and how to compute.
        """
        super().__init__(trained, inference)
        self._made: LoadedFiller | None = None

    def fill_mask(self, texts: Iterable[Any], top: int = TOP.default) -> list[tuple[Filled, ...]]:
        """Returns the words that fit the places of texts.

        Args:
          texts: N texts, each with [MASK] at least once.
          top: words of each place, up to 10.

        Returns:
          For each text its places in their order: `start` and `end` in the text, and `words`, the most probable first, each
          with its `piece` and `probability`.

        Raises:
          CheckpointError: the model has no head for masked words.
          DataError: a text is of another form, or has no [MASK].
          FlagError: `top` is out of bounds.
          ClosedError: the filler was closed.
        """
        words = checked(TOP, top)
        examples = read_rows(texts, _TEXTS, kind=None)
        job.refuse_unusable(examples, _TEXTS)
        with self._turn():
            filler = self._loaded()
            return filler.filled(filler.read(examples), examples, words) if examples else []

    def __repr__(self) -> str:
        """Says where it is."""
        return f"<bert_tf.WordFiller {self.checkpoint}>"

    def _loaded(self) -> LoadedFiller:
        if self._closed:
            raise ClosedError(f"{self!r} was closed; make another")
        if self._made is None:
            self._made = LoadedFiller(self._trained, self._inference, TOP.default)
        return self._made

    def _forget(self) -> None:
        if self._made is not None:
            self._made.close()
            self._made = None


@takes(_KEYWORDS)
def word_filler(checkpoint: str | os.PathLike[str], **settings: Any) -> WordFiller:
    """Returns what fills in masked words: a run of pre-training, or a pretrained model that kept its head.

    Args:
      checkpoint: a checkpoint, a run, or a folder in Hugging Face's layout.
      **settings: `max_seq_length` and others of the model, `batch_size`, `precision`, and those of devices, by the names of the
        flags of `python -m bert_tf fill-mask`.

    Raises:
      CheckpointError: there is no such model, or a file is missing or damaged.
      FlagError: a setting is unknown or has an unusable value.
    """
    given = named(_KEYWORDS, settings)
    batch_size = given.pop(BATCH_SIZE.name, None)
    said = Given(**{name: given.pop(name) for name in _OF_MODEL & given.keys()})
    found = job.find(checkpoint, said, environment=os.environ)
    return WordFiller(found, batch_machine.inference(machine_settings.configured(**given), batch_size, environment=os.environ))


@takes(SETTINGS)
def fill_mask(checkpoint: str | os.PathLike[str], **settings: Any) -> tuple[Filled, ...] | Path:
    """Fills in the masked words of a text, or of a file; does what `python -m bert_tf fill-mask` does. For many: `word_filler`.

        bert_tf.fill_mask("out/pretrained", text="Paris is the [MASK] of France.")[0].words

    Args:
      checkpoint: a checkpoint, a run, or a folder in Hugging Face's layout.
      **settings: those of the command, by the names of its flags.

    Returns:
      The places of the text, see `WordFiller.fill_mask`; of files the output.

    Raises:
      BertError: something that the caller can fix.
    """
    config = configured(os.fspath(checkpoint), **settings)
    found = job.fill_mask(config, environment=os.environ)
    return found if config.files is None else Path(config.files.output)
