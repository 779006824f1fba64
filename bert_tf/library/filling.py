"""Filling in [MASK], as a call and as a filler that a program holds."""

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

    Threads may share one filler; they take turns.

        with bert_tf.word_filler("uncased_L-12_H-768_A-12") as filler:
            filler.fill_mask(["Paris is the [MASK] of France."])[0][0].words[0].piece
    """

    def __init__(self, trained: Trained, inference: InferenceOptions) -> None:
        """Loads nothing yet; use `word_filler` to create one.

        Args:
          trained: weights and their metadata.
          inference: where and how to compute.
        """
        super().__init__(trained, inference)
        self._made: LoadedFiller | None = None

    def fill_mask(self, texts: Iterable[Any], top: int = TOP.default) -> list[tuple[Filled, ...]]:
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
        words = checked(TOP, top)
        examples = read_rows(texts, _TEXTS, kind=None)
        job.refuse_unusable(examples, _TEXTS)
        with self._turn():
            filler = self._loaded()
            return filler.filled(filler.read(examples), examples, words) if examples else []

    def __repr__(self) -> str:
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
    """Returns a filler of masked words from a pre-training run or a pretrained model with a masked-LM head.

    Args:
      checkpoint: a checkpoint, a run, or a Hugging Face folder.
      **settings: model settings such as `max_seq_length`, `batch_size`, `precision` and device settings, by the flag
        names of `python -m bert_tf fill-mask`.

    Raises:
      CheckpointError: the model or one of its files is missing or damaged.
      FlagError: a setting is unknown or invalid.
    """
    given = named(_KEYWORDS, settings)
    batch_size = given.pop(BATCH_SIZE.name, None)
    said = Given(**{name: given.pop(name) for name in _OF_MODEL & given.keys()})
    found = job.find(checkpoint, said, environment=os.environ)
    return WordFiller(found, batch_machine.inference(machine_settings.configured(**given), batch_size, environment=os.environ))


@takes(SETTINGS)
def fill_mask(checkpoint: str | os.PathLike[str], **settings: Any) -> tuple[Filled, ...] | Path:
    """Fills in masked words of a text or file; as `python -m bert_tf fill-mask`. For many texts use `word_filler`.

        bert_tf.fill_mask("out/pretrained", text="Paris is the [MASK] of France.")[0].words

    Args:
      checkpoint: a checkpoint, a run, or a Hugging Face folder.
      **settings: the command's flags, by name.

    Returns:
      The masks of the text, see `WordFiller.fill_mask`; for files the output path.

    Raises:
      BertError: invalid settings or input.
    """
    config = configured(os.fspath(checkpoint), **settings)
    found = job.fill_mask(config, environment=os.environ)
    return found if config.files is None else Path(config.files.output)
