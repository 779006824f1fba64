"""Text vectors, as calls and as an encoder that a program holds."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.job import Given
from bert_tf.batch.trained import Trained
from bert_tf.errors import FlagError, unknown_name
from bert_tf.head_spec import MEAN, POOLINGS
from bert_tf.jobs import batch_machine, machine_settings
from bert_tf.jobs import encode as job
from bert_tf.jobs.batch_settings import MODEL
from bert_tf.jobs.encode import find_encoder
from bert_tf.jobs.encode_config import BATCH_SIZE, SETTINGS, configured
from bert_tf.library.beam_runner import Arguments, Written, runner, written
from bert_tf.library.closed import Closable, ClosedError
from bert_tf.library.keywords import takes
from bert_tf.settings import named
from bert_tf.tasks.sentence.rows import read_rows
from bert_tf.vectors.options import Layers, VectorOptions, layer_numbers
from bert_tf.vectors.text_encoder import TextEncoder

Floats = npt.NDArray[np.float32]

_TEXTS = "texts"
_OF_MODEL = frozenset(row.name for row in MODEL)


class Encoder(Closable):
    """A model that computes text vectors. Weights are loaded lazily; `close` frees them.

    Threads may share one encoder; they take turns.

        with bert_tf.encoder() as encoder:
            encoder.encode(["He left.", "He went away."], normalize=True)
    """

    def __init__(self, trained: Trained, inference: InferenceOptions) -> None:
        """Loads nothing yet; use `encoder` to create one.

        Args:
          trained: weights and their metadata.
          inference: where and how to compute.
        """
        super().__init__(trained, inference)
        self._made: tuple[VectorOptions, TextEncoder] | None = None

    def encode(
        self,
        texts: Iterable[Any],
        *,
        pooling: str = MEAN,
        layers: Layers = -1,
        normalize: bool = False,
        tokens: bool = False,
    ) -> Floats | list[Floats]:
        """Returns vectors of texts or of their tokens.

        Args:
          texts: N texts, or pairs (text, second text), which become one sequence.
          pooling: mean (over all tokens), cls or max.
          layers: layers to concatenate, 0 the first and -1 the last; as -1, (-1, -2) or "-1,-2".
          normalize: scales vectors to length 1, so that dot products are cosines.
          tokens: returns a vector for each token, special tokens included.

        Returns:
          [N, D] float32, D the hidden size times the number of layers; with `tokens` [T, D] for each text.

        Raises:
          DataError: a text has the wrong type.
          FlagError: unknown pooling or layer.
          ClosedError: the encoder was closed.
        """
        if pooling not in POOLINGS:
            raise FlagError(f"pooling: {unknown_name('pooling', pooling, POOLINGS)}")
        options = VectorOptions(pooling, layer_numbers(layers), normalize, tokens)
        examples = read_rows(texts, _TEXTS, kind=None)
        with self._turn():
            loaded = self._loaded(options)
            found = loaded.vectors(loaded.read(examples))
        if found.lengths is None:
            return found.values
        return np.split(found.values, np.cumsum(found.lengths)[:-1]) if examples else []

    def __repr__(self) -> str:
        return f"<bert_tf.Encoder {self.checkpoint}>"

    def _loaded(self, options: VectorOptions) -> TextEncoder:
        if self._closed:
            raise ClosedError(f"{self!r} was closed; make another")
        if self._made is None or self._made[0] != options:
            self._forget()
            self._made = options, TextEncoder(self._trained, self._inference, options)
        return self._made[1]

    def _forget(self) -> None:
        if self._made is not None:
            self._made[1].close()
            self._made = None


@takes((BATCH_SIZE, *MODEL, *machine_settings.SETTINGS))
def encoder(checkpoint: str | os.PathLike[str] | None = None, **settings: Any) -> Encoder:
    """Returns an encoder of texts; a pretrained model is enough.

    Args:
      checkpoint: a checkpoint, a run, or a Hugging Face folder; else that of $BERT_BASE_DIR, else the default one.
      **settings: model settings such as `max_seq_length`, `batch_size`, `precision` and device settings, by the flag
        names of `python -m bert_tf encode`.

    Raises:
      CheckpointError: the model or one of its files is missing or damaged.
      FlagError: a setting is unknown or invalid.
    """
    given = named((BATCH_SIZE, *MODEL, *machine_settings.SETTINGS), settings)
    batch_size = given.pop(BATCH_SIZE.name, None)
    said = Given(**{name: given.pop(name) for name in _OF_MODEL & given.keys()})
    name = None if checkpoint is None else os.fspath(checkpoint)
    found = find_encoder(name, said, environment=os.environ)
    inference = batch_machine.inference(machine_settings.configured(**given), batch_size, environment=os.environ)
    return Encoder(found, inference)


@takes(SETTINGS)
def encode_file(*, beam: Arguments = False, **settings: Any) -> Path | tuple[Written, ...]:
    """Writes the vectors of the texts in files; as `python -m bert_tf encode`. For texts in memory use `encoder`.

        bert_tf.encode_file(input="texts.txt", output="vectors.npz")

    Args:
      beam: arguments of Apache Beam, to run as a pipeline; True for none.
      **settings: the command's flags, by name.

    Returns:
      The file of vectors, or the folder if there are several inputs; with Beam the shards, as strings if they lie on
      another file system.

    Raises:
      BertError: invalid settings or input.
    """
    by = runner(beam)
    config = configured(**settings)
    files = written(job.encode(config, environment=os.environ, beam=by))
    return Path(config.files.output) if by is None else files
